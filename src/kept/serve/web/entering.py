"""Coming in with a key, where keys are needed, and going out again.

The browser keeps the key where no script sees it, and sends it from pages of this server only. The gate looks there.
"""

import re

from fastapi import APIRouter, Request, Response

from kept.serve.gate import COOKIE
from kept.serve.web.page import PageRoute, go_to, house_of, show
from kept.service.keys import find_key

router = APIRouter(route_class=PageRoute)
SECONDS = 30 * 24 * 3600
_HERE = re.compile(r"/(?![/\\])[^\x00-\x20\x7f-\U0010ffff\\]*")  # a page of ours, whatever a browser makes of it


@router.get("/login")
async def ask(request: Request, to: str = "/") -> Response:
    return show("login.html", request, to=to, wrong=False)


@router.post("/login")
async def enter(request: Request) -> Response:
    form = await request.form()
    said, to = str(form.get("key", "")).strip(), str(form.get("to", "/"))
    if await find_key(house_of(request).db, said) is None:
        return show("login.html", request, code=401, to=to, wrong=True)
    page = go_to(to if _HERE.fullmatch(to) else "/")
    page.set_cookie(
        COOKIE, said, max_age=SECONDS, httponly=True, samesite="strict", secure=request.url.scheme == "https"
    )
    return page


@router.post("/logout")
async def leave(request: Request) -> Response:
    page = go_to("/login")
    page.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return page
