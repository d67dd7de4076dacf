"""The job: from a picture to thumbnails, in a process of its own.

Decoding pictures is C code fed with strangers' bytes. Isolated, a picture that crashes it, hangs it or needs all the memory costs
one failed attempt, and not the worker with everything else that runs there.
"""

from pathlib import Path

from PIL import Image, ImageOps

from workmill import Retry, Workmill, current_job

SIZES = (1024, 256, 64)
Image.MAX_IMAGE_PIXELS = None  # the memory limit below is ours, and knows what a picture really needs

mill = Workmill()


@mill.job(isolate=True, memory_limit="400MB", timeout=60, retry=Retry(max_attempts=2, backoff=[1]))
def thumbnail(source: str, folder: str) -> list[str]:
    """Make a thumbnail of each size and return their paths."""
    job = current_job()
    made = []
    with Image.open(source) as picture:
        whole = ImageOps.exif_transpose(picture).convert("RGB")
    for number, size in enumerate(SIZES, start=1):
        whole.thumbnail((size, size))
        path = Path(folder) / f"{Path(source).stem}-{size}.jpg"
        whole.save(path, quality=85)
        made.append(str(path))
        job.progress(number / len(SIZES), path.name)
    return made
