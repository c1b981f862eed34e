"""Uniform cubes have a known dimension at their centre, from which a neighbourhood does not reach the faces.

There, k neighbours give k / (k - 2) times the dimension in the mean, because -log(r_i / r_k) are exponential with the
dimension as rate. For 20 points to lie in the ball that fits into the cube, it takes 1,300 in 8 dimensions and 10^16 in
32. So only that ball is drawn: for 2 and 8 dimensions by leaving out the rest of a sample of the cube, which does not
change the centre's neighbours; for 32, by drawing uniformly in the ball itself.
"""

import math

import pytest
import torch

from labelmend.methods.d2l import local_dimension

NEIGHBOURS = 20
EXPECTED = NEIGHBOURS / (NEIGHBOURS - 2)


def cube(points, dimension, rng):
    """Uniform in [-1, 1]^dimension."""
    return 2 * torch.rand(points, dimension, generator=rng) - 1


def ball_in_cube(points, dimension, rng):
    """What of a sample of the cube is nearer to its centre than the faces are."""
    sample = cube(points, dimension, rng)
    return sample[sample.norm(dim=1) < 1]


def ball(points, dimension, rng):
    """Uniform in the ball that fits into the cube."""
    directions = torch.nn.functional.normalize(torch.randn(points, dimension, generator=rng))
    return directions * torch.rand(points, 1, generator=rng) ** (1 / dimension)


def dimension_in_the_centre(draw, points, dimension, trials=300):
    rng, centre = torch.Generator().manual_seed(0), torch.zeros(1, dimension)
    samples = [torch.cat([centre, draw(points, dimension, rng)]) for _ in range(trials)]
    assert min(len(sample) for sample in samples) > NEIGHBOURS
    return float(torch.stack([local_dimension(sample, NEIGHBOURS)[0] for sample in samples]).mean())


@pytest.mark.parametrize(
    ("draw", "points", "dimension"), [(ball_in_cube, 80, 2), (ball_in_cube, 4000, 8), (ball, 60, 32)]
)
def test_the_dimension_in_the_centre_of_a_uniform_cube_is_found_to_one_in_twenty(draw, points, dimension):
    assert dimension_in_the_centre(draw, points, dimension) / EXPECTED == pytest.approx(dimension, rel=0.05)


def test_a_batch_is_too_small_for_many_dimensions_and_yet_ranks_them():
    rng = torch.Generator().manual_seed(1)
    few, more, most = (float(local_dimension(cube(128, dimension, rng)).mean()) for dimension in (2, 8, 32))
    assert few < more < most < 0.7 * 32


def test_the_estimate_is_that_of_a_loop_over_neighbours():
    features = torch.randn(30, 5, generator=torch.Generator().manual_seed(2))
    for row, estimate in enumerate(local_dimension(features, 7).tolist()):
        apart = sorted(math.dist(features[row].tolist(), other.tolist()) for other in features)[1:8]
        assert estimate == pytest.approx(-7 / sum(math.log(r / apart[-1]) for r in apart), rel=1e-4)


def test_a_plane_in_a_wide_space_has_the_dimension_of_the_plane():
    flat = torch.rand(100, 2, generator=torch.Generator().manual_seed(3))
    wide = flat.repeat_interleave(32, dim=1) - 1
    torch.testing.assert_close(local_dimension(wide), local_dimension(flat), rtol=1e-3, atol=0)


def test_neither_scale_nor_place_of_the_features_matters():
    features = torch.randn(40, 6, generator=torch.Generator().manual_seed(4))
    torch.testing.assert_close(local_dimension(1000 * features - 7), local_dimension(features), rtol=1e-3, atol=0)


def test_a_small_batch_has_all_others_as_neighbours():
    features = torch.randn(10, 4, generator=torch.Generator().manual_seed(5))
    assert torch.equal(local_dimension(features, 20), local_dimension(features, 9))


def test_equal_distances_say_nothing():
    assert local_dimension(torch.ones(12, 3)).tolist() == [0.0] * 12
    assert local_dimension(torch.eye(5)).tolist() == [0.0] * 5


def test_some_samples_on_the_same_spot_leave_all_estimates_finite():
    features = torch.randn(30, 4, generator=torch.Generator().manual_seed(6))
    features[:10] = features[0]
    assert local_dimension(features).isfinite().all()
