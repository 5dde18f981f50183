"""Hooks that other programs call, and uploads of files."""

from typing import Annotated

from fastapi import APIRouter, File, Form, Header, Request, Response, UploadFile

from kept.server.api import models
from kept.server.api.models import ShortText, SourceLabel, describe_response
from kept.server.responses import PrincipalDep, ServicesDep, json_response, source_added_response
from kept.service import jobs, uploads

router = APIRouter(tags=["outside"])

HubSignature = Annotated[str | None, Header(alias="X-Hub-Signature-256", description="sha256=HMAC-SHA256 of the body")]


@router.post(
    "/hooks/{source}", status_code=202, responses=describe_response(models.QueuedModel, 202, "A refresh is queued.")
)
async def hook(
    source: SourceLabel,
    request: Request,
    services: ServicesDep,
    signature: HubSignature = None,
    event: Annotated[str | None, Header(alias="X-GitHub-Event")] = None,
) -> Response:
    """Request a refresh because something has changed. The secret is set with `kept set NAME --hook-secret`."""
    job = await jobs.receive_hook(
        services.db, source, await request.body(), signature or "", services.secrets.look_up, enqueue=event != "ping"
    )
    job_id = job.id if job else ""
    return json_response({"job_id": job_id, "progress_id": job_id}, 202)


@router.post("/uploads", status_code=201, responses=models.ADD_SOURCE_RESPONSES)
async def upload(
    request: Request,
    services: ServicesDep,
    principal: PrincipalDep,
    file: Annotated[UploadFile, File(description="A document, or a zip of documents.")],
    name: Annotated[ShortText | None, Form()] = None,
    version: Annotated[ShortText, Form()] = "",
) -> Response:
    """Add a file, or the files of a zip, as a source. An upload under the same name replaces the earlier one."""
    settings = request.app.state.settings
    added = await uploads.add_upload(
        services,
        principal,
        settings.uploads_folder,
        file.file,
        file.filename or "",
        name=name or None,
        version=version,
        max_bytes=settings.serve.uploads_mb * 1024**2,
    )
    return source_added_response(added)
