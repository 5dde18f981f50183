"""One application of all doors."""

from fastapi import FastAPI

from kept.service.house import House
from kept.settings import Settings


def make_app(house: House, settings: Settings) -> FastAPI:
    """The server on a house that is open. It opens and closes nothing itself."""
    app = FastAPI(title="Kept", openapi_url="/api/v1/openapi.json", docs_url=None, redoc_url=None)
    app.state.house, app.state.settings = house, settings
    return app
