"""Style sheet, scripts and icon. Their URLs contain a hash of the content, so browsers may cache them forever."""

import hashlib
from functools import cache
from pathlib import Path

from fastapi import APIRouter, HTTPException, Response

router = APIRouter()

_HERE = Path(__file__).parent
_FILES = {
    "kept.css": (_HERE / "static/kept.css", "text/css"),
    "kept.js": (_HERE / "static/kept.js", "text/javascript"),
    "icon.svg": (_HERE / "static/icon.svg", "image/svg+xml"),
    "htmx.min.js": (_HERE / "vendor/htmx/htmx.min.js", "text/javascript"),
}
_IMMUTABLE = {"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}


@cache
def _read(name: str) -> tuple[bytes, str]:
    body = _FILES[name][0].read_bytes()
    return body, hashlib.sha256(body).hexdigest()[:12]


def asset_url(name: str) -> str:
    return f"/static/{_read(name)[1]}/{name}"


@router.get("/static/{hash}/{name}")
async def get_asset(hash: str, name: str) -> Response:
    if name not in _FILES:
        raise HTTPException(404)
    return Response(_read(name)[0], media_type=_FILES[name][1], headers=_IMMUTABLE)
