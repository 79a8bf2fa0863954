"""The studio: a page in the browser from a file to a published table, for one user on one machine.

    files    the private folder of a run, and the files that the user chose
    choices  what was chosen so far; `forms` reads it from forms, `repeat` says it as a command and as Python
    work     the jobs: each calls `dipriv.inspect`, `plan`, `privatize_file` or `audit`; `worker` runs them in a process
    tabs     what each tab of the browser has open
    pages    HTML;  `guard` and `server`  HTTP on 127.0.0.1;  `run`  the life of a studio

It has no logic of its own about privacy, and no state but that of its tabs.
"""
