"""Whom should a bank call? 41,188 calls of a campaign."""

# %% [markdown]
# # A bank: whom should it call?
#
# A Portuguese bank called its clients to sell term deposits: 41,188 calls (UCI Bank Marketing, Moro et al. 2014). A
# consultant asks: **do calls to mobile phones sell more, and does a client's earlier yes predict another?** The bank
# may not hand out its clients; it releases the columns that the question needs.

# %%
import pyarrow.parquet as pq

import dipriv
from dipriv.statistics import Difference, GroupMean, Share
from research.data import data_file

columns = ["age", "job", "marital", "education", "contact", "poutcome", "y"]
calls = pq.read_table(data_file("bank/bank-additional-full.parquet"), columns=columns).to_pandas()
calls["sold"] = (calls.pop("y") == "yes").astype(int)
print(f"{len(calls):,} rows; {calls['sold'].mean():.3f} of the calls sold a deposit")

# %% [markdown]
# ## The release
#
# Ages are from 0 to 120, as everybody knows without a look at the rows, and a sale is 0 or 1; labels are found
# privately. Leaving columns out that the question does not need leaves more ε for the others.

# %%
schema = {"age": dipriv.Discrete(step=1, lower=0, upper=120), "sold": dipriv.Discrete(levels=(0, 1))}
release = dipriv.privatize(calls, epsilon=1.0, schema=schema, target="sold", seed=1)
print(release.verdict)

# %% [markdown]
# ## The analysis

# %%
mobile = Difference(GroupMean("sold", "contact", "cellular"), GroupMean("sold", "contact", "telephone"))
again = Difference(GroupMean("sold", "poutcome", "success"), GroupMean("sold", "poutcome", "nonexistent"))
for interval in release.intervals([Share("sold", 1), mobile, again], replicates=20):
    print(interval)
print(f"true: {calls['sold'].mean():.3f}, {mobile.of(calls):.3f}, {again.of(calls):.3f}")

# %% [markdown]
# ## What ε costs
#
# The same difference at other ε:

# %%
for epsilon in (0.1, 0.3, 1.0, 3.0):
    one = dipriv.privatize(calls, epsilon, schema=schema, target="sold", seed=2)
    found = one.interval(mobile, replicates=20)
    shown = found.reason or f"{found.estimate:.3f}, 95% interval {found.low:.3f} to {found.high:.3f}"
    print(f"ε = {epsilon}: {shown}")

# %% [markdown]
# With 41,188 rows even a small ε answers this question: mobile phones sell more, and clients who bought once buy again
# far more often. Do not read single released rows: they are as good as synthetic.
