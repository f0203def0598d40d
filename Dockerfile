# HORIZON on a CPU:
#   docker build -t horizon .
#   docker run --rm horizon eval core --severity 0.5 --columns all --episodes 64
#   docker run --rm -it -p 8080:8080 horizon play core --host 0.0.0.0
#   docker run --rm -it -v "$PWD/logs:/work/logs" horizon train
# INDEX names a package index with the CPU build of torch; without it, pip takes the larger one.
FROM python:3.12-slim
# Films and pictures are drawn by OpenGL.
RUN apt-get update && apt-get install -y --no-install-recommends \
    libegl1 libgl1-mesa-dri libosmesa6 && rm -rf /var/lib/apt/lists/*
ARG INDEX=""
COPY . /src
RUN pip install --no-cache-dir ${INDEX:+--extra-index-url "$INDEX"} \
    -c /src/constraints.txt "/src[viewer,onnx]" && rm -rf /src
WORKDIR /work
ENTRYPOINT ["horizon"]
