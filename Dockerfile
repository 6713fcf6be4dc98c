# A classifier as a service, in a container:
#
#   docker build -t visionshare .
#   docker run --rm -p 127.0.0.1:8000:8000 -v "$PWD/out/digits:/model:ro" visionshare
FROM python:3.13-slim
RUN useradd --create-home visionshare
USER visionshare
WORKDIR /home/visionshare
ENV PATH=/home/visionshare/.local/bin:$PATH
COPY --chown=visionshare . source
# Kernels are compiled once, so that the first request need not wait.
RUN pip install --user --no-cache-dir "./source[serve]" && rm -rf source && visionshare --quiet warmup
EXPOSE 8000
HEALTHCHECK CMD python -c "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/health', timeout=5)"
ENTRYPOINT ["visionshare", "serve", "--host", "0.0.0.0"]
CMD ["/model/classifier.safetensors"]
