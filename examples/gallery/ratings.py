"""Which films are liked best? A million ratings, released one by one."""

# %% [markdown]
# # Ratings: which films are liked best?
#
# MovieLens 1M has 1,000,209 ratings of films, from 1 to 5 (GroupLens; Harper and Konstan 2015). **Which of the most
# rated films are liked best?** Who rated which film is taken as public here, and the rating itself is protected: ε is
# that of *one rating*, not of a person with many ([panel](panel.md) has that).

# %%
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import dipriv
from research.data import data_file

ratings = pq.read_table(data_file("movielens/ml-1m-ratings.parquet")).to_pandas()
print(f"{len(ratings):,} ratings by {ratings['userId'].nunique():,} people of {ratings['movieId'].nunique():,} films")

# %% [markdown]
# ## The release
#
# One column of five levels and a million rows: the reference costs next to nothing, and nearly all of ε goes to rows.

# %%
stars = {"rating": dipriv.Discrete(levels=(1, 2, 3, 4, 5))}
release = dipriv.privatize(ratings, epsilon=2.0, schema=stars, keep=["userId", "movieId"], seed=1)
rho = release.fidelity["rating"]
print(f"expected correlation of released with true ratings: {rho:.3f}")

# %% [markdown]
# ## The analysis
#
# The films are kept columns, which the reference knows nothing about. Noise in the rating pulls a film's mean towards
# the mean of all ratings by ρ ([why](../howto/attenuation.md)). Dividing by ρ undoes it, and widens the interval as
# much. The correction is exact where the expected released rating is a linear function of the true one, and an
# approximation otherwise: so we count how many intervals hold the true mean.


# %%
def film_means(released: Any, rho: float) -> tuple[Any, Any, Any]:
    """Corrected means of the 50 films with the most ratings, with their 95% intervals."""
    centre = released["rating"].mean()
    films = released.groupby("movieId")["rating"].agg(["mean", "std", "size"]).nlargest(50, "size")
    corrected = centre + (films["mean"] - centre) / rho
    half = 1.96 * films["std"] / np.sqrt(films["size"]) / rho
    return corrected, corrected - half, corrected + half


def holds(truth: Any, low: Any, high: Any) -> int:
    return int(((low <= truth) & (truth <= high)).sum())


estimate, low, high = film_means(release.data, rho)
truth = ratings.groupby("movieId")["rating"].mean()[estimate.index]
plain = release.data.groupby("movieId")["rating"].mean()[estimate.index]
print(f"intervals that hold the true mean: {holds(truth, low, high)} of 50")
print(f"root mean squared error: plain means {np.sqrt(((plain - truth) ** 2).mean()):.3f}, corrected ", end="")
print(f"{np.sqrt(((estimate - truth) ** 2).mean()):.3f}")
print(f"of the ten best films, found: {len(set(estimate.nlargest(10).index) & set(truth.nlargest(10).index))}")

# %% [markdown]
# ## What ε costs

# %%
for epsilon in (0.5, 1.0, 2.0, 4.0):
    one = dipriv.privatize(ratings, epsilon, schema=stars, keep=["userId", "movieId"], seed=2)
    estimate, low, high = film_means(one.data, one.fidelity["rating"])
    best = len(set(estimate.nlargest(10).index) & set(truth.nlargest(10).index))
    print(
        f"ε = {epsilon}: half width {((high - low) / 2).mean():.3f}, {holds(truth[estimate.index], low, high)} of 50 "
        f"intervals hold the truth, {best} of the ten best films found"
    )
