# The agent's image, for the CPU: docker build -f deploy/agent.Dockerfile -t trainmark-agent .
# For NVIDIA GPUs: --build-arg EXTRAS=torch,jax-cuda --build-arg TORCH_INDEX=https://pypi.org/simple
# or --build-arg EXTRAS=tensorflow-cuda,mlx-cuda; one image has one CUDA. CUDA is in the wheels; the
# machine has the driver and NVIDIA's container toolkit (docker run --gpus all).
# docker run --rm --read-only --tmpfs /tmp -v trainmark:/home/trainmark trainmark-agent run
FROM python:3.12-slim AS build
ARG EXTRAS=tensorflow,jax,torch
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
WORKDIR /source
COPY constraints.txt ./
COPY shared shared
COPY agent agent
RUN python -m venv /opt/trainmark \
 && /opt/trainmark/bin/pip install --no-cache-dir --disable-pip-version-check \
    -c constraints.txt --extra-index-url "$TORCH_INDEX" ./shared "./agent[$EXTRAS]"

FROM python:3.12-slim
RUN useradd --system --uid 10002 --home-dir /home/trainmark trainmark \
 && install -d -o trainmark -m 0700 /home/trainmark
COPY --from=build /opt/trainmark /opt/trainmark
ENV PATH=/opt/trainmark/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    HOME=/home/trainmark BENCH_HOME=/home/trainmark
USER 10002
VOLUME ["/home/trainmark"]
ENTRYPOINT ["bench-agent"]
CMD ["doctor"]
