"""Tables beyond memory or beyond one machine: `stream` on this machine, `spark` on a cluster; the same rows out."""
