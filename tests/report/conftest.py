import pytest

from tests.helpers.browser import new_browser


@pytest.fixture(scope="package")
def browser():
    with new_browser() as driver:
        yield driver
