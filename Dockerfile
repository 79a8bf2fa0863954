# The command line of dipriv. `docker build --tag dipriv .`, then
#   docker run --rm --user "$(id -u)" --volume "$PWD:/data" dipriv ledger create
#   docker run --rm --user "$(id -u)" --volume "$PWD:/data" dipriv privatize people.csv -o released.csv --epsilon 1
FROM python:3.11.13-slim-bookworm AS wheel
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.11.13-slim-bookworm
COPY requirements-image.lock /tmp/requirements.lock
RUN pip install --no-cache-dir --require-hashes --requirement /tmp/requirements.lock
COPY --from=wheel /wheels /tmp/wheels
RUN pip install --no-cache-dir --no-deps /tmp/wheels/*.whl \
    && rm -r /tmp/wheels /tmp/requirements.lock \
    && mkdir /data && chown 10001 /data
USER 10001
WORKDIR /data
# compiled loops are kept here; the ledger lies beside the data, so that it outlives the container
ENV NUMBA_CACHE_DIR=/tmp/numba DIPRIV_LEDGER=sqlite:////data/dipriv-ledger.db
ENTRYPOINT ["dipriv"]
CMD ["--help"]
