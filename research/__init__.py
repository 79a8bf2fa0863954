"""Research on dipriv: the paper's tables and figures, measured again. In the repository, not in the package.

    python -m research --list                  # what there is
    python -m research discrete-means uc-salary --reps 20 --out results
    python -m research all --out docs/reproduction
    python -m research.pages                   # the pages of docs/ from the numbers on record

`experiments` has a module for each table or figure, `baselines` the mechanisms that the paper compares with, each with
the guarantee that it truly gives. `protocol` says what an experiment is, `runner` runs it, `compare` sets its numbers
beside the paper's, `pages` and `templates` show them. `audit_standard` has the mechanisms on which the bounds of both
kernels are measured.

Real data sets are read from the folder that DIPRIV_DATA names, else from ../shared/data, and are never downloaded: an
experiment that lacks its data set says where to get it. `make setup` installs research/requirements.txt.
"""
