import numpy as np
import pytest

from labelmend.config import TrainConfig
from labelmend.errors import InputError
from labelmend.report.build import build_report
from labelmend.train import prepare, train

PAYLOAD = "<script>alert('x')</script>&\"'"


def test_class_names_render_as_text_and_nothing_is_fetched(tmp_path):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(60) % 2, PAYLOAD, "plain")
    np.savez(tmp_path / "rows.npz", x=rng.normal(size=(60, 3)), y=y)
    config = TrainConfig(source=str(tmp_path / "rows.npz"), out=str(tmp_path / "run"), epochs=2, noise="symmetric:0.4")
    page = train(prepare(config))[0].report.read_text()
    assert "<script" not in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "default-src 'none'" in page


def test_a_report_of_an_unfinished_run_is_refused(train_digits):
    run = train_digits()
    run.update(status="interrupted")
    with pytest.raises(InputError, match="finish it"):
        build_report(run)


def test_rebuilding_a_report_gives_the_same_page(train_digits):
    run = train_digits()
    before = run.report.read_bytes()
    build_report(run)
    assert run.report.read_bytes() == before
