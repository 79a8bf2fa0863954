"""Do women rate films differently? People with many rows."""

# %% [markdown]
# # A panel: people with many rows
#
# The same ratings with what MovieLens 1M knows about its 6,040 people: sex, and a bracket of age. A person has 20 to
# 2,314 rows. **Do women rate higher than men?** Now the promise is to a *person*, with all of their rows together.

# %%
import pyarrow.parquet as pq

import dipriv
from dipriv.statistics import Difference, GroupMean, Slope
from research.data import data_file

people = pq.read_table(data_file("movielens/ml-1m-users.parquet")).to_pandas()
ratings = pq.read_table(data_file("movielens/ml-1m-ratings.parquet")).to_pandas()
print(f"{len(people):,} people, {len(ratings) / len(people):.0f} ratings each on average")

# %% [markdown]
# ## A table of persons answers a question about persons
#
# The question is about people, so one row a person is enough: the mean of their ratings. One row a person needs no
# contribution bound, and has right intervals. The brackets of age and the range of a mean are public.

# %%
means = ratings.groupby("userId")["rating"].mean().round(2).rename("mean_rating")
persons = people.join(means, on="userId")[["gender", "age", "mean_rating"]]
gender, age = dipriv.Categorical(levels=("F", "M")), dipriv.Discrete(levels=(1, 18, 25, 35, 45, 50, 56))
schema = dipriv.Schema({"gender": gender, "age": age, "mean_rating": dipriv.Continuous(lower=1.0, upper=5.0)})
release = dipriv.privatize(persons, epsilon=1.0, schema=schema, target="mean_rating", seed=1)
gap = Difference(GroupMean("mean_rating", "gender", "F"), GroupMean("mean_rating", "gender", "M"))
for interval in release.intervals([gap, Slope("mean_rating", "age")], replicates=40):
    print(interval)
print(f"true: {gap.of(persons):.3f}, {Slope('mean_rating', 'age').of(persons):.4f}")

# %% [markdown]
# ## What ε costs

# %%
for epsilon in (0.5, 1.0, 2.0, 4.0):
    one = dipriv.privatize(persons, epsilon, schema=schema, target="mean_rating", seed=2)
    found = one.interval(gap, replicates=40)
    print(f"ε = {epsilon}: difference {found.estimate:6.3f}, 95% interval {found.low:6.3f} to {found.high:6.3f}")

# %% [markdown]
# Where the interval holds zero, the answer is: if there is a difference, it is smaller than the interval's ends. No
# analyst may say more from this release. More ε narrows the interval as far as the sampling of 6,040 people allows.
#
# ## All rows of a person together
#
# Where rows themselves are needed, name the column that says whose a row is. At most five rows of a person are used and
# released, and ε is that of all of them: the noise is larger. Sex and age are constant in a person and stay so.

# %%
rows = ratings.join(people.set_index("userId"), on="userId")[["userId", "gender", "age", "rating"]]
kinds = dipriv.Schema({"gender": gender, "age": age, "rating": dipriv.Discrete(levels=(1, 2, 3, 4, 5))})
by_person = dipriv.privatize(
    rows, epsilon=4.0, schema=kinds, unit="userId", rows_per_unit=5, constant=["gender", "age"], seed=1
)
print("\n".join(str(by_person.guarantee).splitlines()[:2]))
constant = by_person.data.groupby("userId")[["gender", "age"]].nunique().max().max()
print(f"{by_person.n_rows:,} rows released; different values of sex and age in a person: at most {constant}")
in_rows = Difference(GroupMean("rating", "gender", "F"), GroupMean("rating", "gender", "M"))
print(f"difference in the released rows: {in_rows.of(by_person.data):.3f}; in all rows: {in_rows.of(rows):.3f}")
try:
    by_person.interval(in_rows)
except dipriv.InputError as refused:
    print(refused)

# %% [markdown]
# There is no interval for rows of persons, and dipriv says why. The table of persons answers the question, at a quarter
# of this ε. Release rows of persons where analysts need rows; answer questions about persons from a table of persons.
