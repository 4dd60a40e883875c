"""What xarray opened from Zarr, with dask and from a web server, as a `FieldDataset`."""

import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
import zarr
from somafeed import FieldDataset


def test_what_dask_would_read(tmp_path):
    script = Path(__file__).parents[1] / "tests/fields_from_xarray.py"
    command = [sys.executable, script, str(tmp_path), "12", "0", "CHUNKED"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "12 stores are read as xarray reads them\n"), (
        ended.stderr
    )


class Ranges(SimpleHTTPRequestHandler):
    """Answers with ranges of files."""

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        whole = path.read_bytes()
        first, last = 0, len(whole) - 1
        wanted = self.headers.get("Range")
        self.send_response(206 if wanted else 200)
        if wanted:
            start, _, end = wanted.removeprefix("bytes=").partition("-")
            first = int(start) if start else len(whole) - int(end)
            last = min(int(end), last) if start and end else last
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(whole)}")
        self.send_header("Content-Length", str(last + 1 - first))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(whole[first : last + 1])

    do_HEAD = do_GET

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(tmp_path):
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Ranges, directory=tmp_path)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.filterwarnings("ignore:Consolidated metadata")
def test_a_group_on_a_web_server(tmp_path, server):
    values = np.arange(240, dtype="f4").reshape(10, 6, 4)
    store = xr.Dataset({"t2m": (("time", "lat", "lon"), values)}, {"lat": np.arange(6) * 10.0})
    store.to_zarr(tmp_path / "weather.zarr", group="era5", consolidated=False)
    # A web server cannot list what there is.
    zarr.consolidate_metadata(str(tmp_path / "weather.zarr"))
    opened = xr.open_zarr(f"{server}/weather.zarr", group="era5", chunks=None)
    ds = FieldDataset(opened.sel(lat=slice(10, 30)), batch_size=4, shuffle=False)
    read = np.concatenate([batch["t2m"] for batch in ds])
    assert np.array_equal(read, values[:, 1:4])
