"""Do women in good marriages have fewer affairs? A survey of 6,366 women."""

# %% [markdown]
# # A survey: do women in good marriages have fewer affairs?
#
# In 1974 a magazine asked its readers about their marriages; 6,366 women answered nine questions. The answers are as
# private as answers can be. A sociologist wants to know: **do fewer of the women who rate their marriage highly have
# affairs?** The survey has the time spent in affairs. Earlier releases had shown that its long tail makes intervals
# wide, and whether it is more than 0 is all that the question needs: so the keeper releases yes or no. The question was
# fixed from general knowledge (R. Fair, who analysed the survey in 1978, asks it, too) before this release was made;
# what came out is reported as it is.

# %%
import dipriv
from dipriv.statistics import Difference, GroupMean, Mean, Slope
from examples.demo import QUESTIONNAIRE, load

survey = load().to_pandas()
survey["affair"] = (survey.pop("affairs") > 0).astype(int)
print(f"{len(survey):,} rows, {len(survey.columns)} columns: {', '.join(survey.columns)}")

# %% [markdown]
# ## The keeper's part
#
# The questionnaire is public, so its answers are declared. The question is about `affair`, so it is the target: its
# pairs with all other columns are measured first. Before anything is spent, the plan says what ε buys.

# %%
schema = dict(QUESTIONNAIRE) | {"affair": dipriv.Discrete(levels=(0, 1))}
print(dipriv.plan(survey, [0.5, 1.0, 2.0, 4.0], schema=schema, target="affair").recommendation)

# %%
release = dipriv.privatize(survey, epsilon=1.0, schema=schema, target="affair", seed=1)
print(release.verdict)

# %% [markdown]
# ## The analyst's part
#
# The analyst has the released table and its data sheet, nothing else. Ordinary standard errors would leave out the
# noise of the release; `interval` has it in.

# %%
very_good, very_poor = GroupMean("affair", "rate_marriage", 5), GroupMean("affair", "rate_marriage", 1)
asked = [Mean("affair"), Difference(very_good, very_poor), Slope("affair", "rate_marriage")]
for interval in release.intervals(asked, replicates=40):
    print(interval)

# %% [markdown]
# ## The conclusion, and what ε costs
#
# If the interval of the slope lies below zero, the answer is yes: each step of the rating, from 1 (very poor) to 5
# (very good), goes with fewer affairs. Between the ends of the scale there is no interval: few women call their
# marriage very poor, and the release says that they were counted with others. We have the original, so we can look, as
# an analyst cannot: the truth, and what the interval would have been at other ε.

# %%
print(f"true slope {Slope('affair', 'rate_marriage').of(survey):.3f}")
for epsilon in (0.5, 1.0, 2.0, 4.0):
    one = dipriv.privatize(survey, epsilon, schema=schema, target="affair", seed=2)
    found = one.interval(Slope("affair", "rate_marriage"), replicates=40)
    print(f"ε = {epsilon}: slope {found.estimate:.3f}, 95% interval {found.low:.3f} to {found.high:.3f}")
