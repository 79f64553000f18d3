# Two commands: docker run --rm -i IMAGE < session.jsonl > small.jsonl
#               docker run --rm -v "$PWD:/data" --entrypoint compactor IMAGE stats session.jsonl
FROM python:3.13-slim AS build
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --wheel-dir /wheels ".[fast,parquet]"

FROM python:3.13-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --no-index --find-links /wheels "compactor-cli[fast,parquet]" && rm -rf /wheels \
    && useradd --create-home --uid 10001 compact
USER compact
WORKDIR /data
ENTRYPOINT ["compact"]
