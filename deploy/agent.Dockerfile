# The agent's image, for the CPU: docker build -f deploy/agent.Dockerfile -t trainmark-agent .
# For NVIDIA GPUs: --build-arg LOCKS="torch jax-cuda" --build-arg CPU_TORCH=
# or --build-arg LOCKS="tensorflow-cuda mlx-cuda" --build-arg CPU_TORCH=; one image has one CUDA. CUDA
# is in the wheels; the machine has the driver and NVIDIA's container toolkit (docker run --gpus all).
# docker run --rm --read-only --tmpfs /tmp -v trainmark:/home/trainmark trainmark-agent run
FROM python:3.12-slim AS build
ARG LOCKS="tensorflow mlx jax"
# The index with PyTorch for the processor alone; empty: none of it.
ARG CPU_TORCH=https://download.pytorch.org/whl/cpu
WORKDIR /source
COPY locks locks
COPY shared shared
COPY agent agent
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PATH=/opt/trainmark/bin:$PATH
RUN python -m venv /opt/trainmark \
 && for lock in agent $LOCKS; do \
      pip install --require-hashes -r "locks/$lock.txt" || exit 1; \
    done \
 && if [ -n "$CPU_TORCH" ]; then \
      pip install --extra-index-url "$CPU_TORCH" -r locks/torch-cpu.txt; \
    fi \
 && pip install --no-deps ./shared ./agent

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
