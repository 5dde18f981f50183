"""What comes from outside by itself: hooks of other programs, and files."""

from typing import Annotated

from fastapi import APIRouter, File, Form, Header, Request, Response, UploadFile

from kept.serve.answers import TheAsker, TheHouse, added, answer
from kept.serve.api import models
from kept.serve.api.models import Label, Words, told
from kept.service import asking, hooks

router = APIRouter(tags=["outside"])

Signature = Annotated[str | None, Header(alias="X-Hub-Signature-256", description="sha256=HMAC-SHA256 of the body")]


@router.post("/hooks/{source}", status_code=202, responses=told(models.Queued, 202, "A refresh is asked for."))
async def hook(
    source: Label,
    request: Request,
    house: TheHouse,
    signature: Signature = None,
    event: Annotated[str | None, Header(alias="X-GitHub-Event")] = None,
) -> Response:
    """Another program says that something has changed. The secret is that of `kept set NAME --hook-secret`."""
    job = await hooks.hear(
        house.db, source, await request.body(), signature or "", house.secrets.look_up, ask=event != "ping"
    )
    known = {"job_id": job.id, "progress_id": job.id} if job else {"job_id": "", "progress_id": ""}
    return answer(known, 202)


@router.post("/uploads", status_code=201, responses=models.ADDED)
async def upload(
    request: Request,
    house: TheHouse,
    asker: TheAsker,
    file: Annotated[UploadFile, File(description="A document, or a zip of documents.")],
    name: Annotated[Words | None, Form()] = None,
    version: Annotated[Words, Form()] = "",
) -> Response:
    """Keeps a file, or what is in a zip. Under the same name again, it takes the place of what was there."""
    folder = request.app.state.settings.uploads_folder
    kept = await asking.upload(house, asker, folder, file.file, file.filename or "", name=name or None, version=version)
    return added(*kept)
