"""What dipriv says about its own releases, against the private tables: one module for each claim."""
