import { z } from 'zod';
import type { CoverageGroup } from '../../../db/reconciliation/coverage.js';
import { usdNumberFromPico } from '../../../domain/money.js';
import { shiftDay } from '../../../domain/period.js';
import { type CoverageFigures, dollarShare, tokenShare } from '../../../domain/reconciliation/coverage.js';
import { csvList } from '../../csv.js';
import { offsetParameters, pageFields } from '../../paging.js';
import { filterParameter, instantParameter, withDefault, wordParameter } from '../../query.js';

export const COVERAGE_GROUPS = ['provider', 'account', 'model', 'key', 'day'] as const;
/** Longest window of one answer, in days. */
export const COVERAGE_DAYS_MAX = 366;

export const coverageQuery = z.object({
  group_by: withDefault(wordParameter(COVERAGE_GROUPS), 'provider'),
  provider: filterParameter
    .optional()
    .meta({ description: 'In any of its names; one that is not known finds nothing' }),
  provider_account_id: filterParameter.optional(),
  from: instantParameter.optional().meta({ description: 'First day; by default the 30 days up to the end' }),
  to: instantParameter.optional().meta({ description: 'Last day, included; by default today' }),
  ...offsetParameters(),
});

const usd = z.number();

const figureFields = {
  days: z.int().meta({ description: 'Days with a bill' }),
  calls: z.int(),
  billed_tokens: z
    .number()
    .meta({ description: 'Where bill or usage report count tokens, on compared days' }),
  observed_tokens: z.number().meta({ description: 'On the same days: covered_tokens + beyond_tokens' }),
  covered_tokens: z.number().meta({
    description:
      'Of the billed tokens those that were observed, by day and class: never more than were billed',
  }),
  beyond_tokens: z.number().meta({ description: 'Observed, and on no bill' }),
  token_share: z
    .number()
    .nullable()
    .meta({ description: 'covered_tokens ÷ billed_tokens, 0 to 1; null where no bill counts tokens' }),
  billed_usd: usd.meta({
    description:
      'explained_usd + not_matched_by_calls_usd + not_observable_usd + not_yet_observed_usd + not_compared_usd',
  }),
  explained_usd: usd.meta({ description: 'What observed calls explain at the agreed rates' }),
  not_matched_by_calls_usd: usd.meta({
    description: 'The rest; the statement shows how much of it findings explain',
  }),
  dollar_share: z.number().nullable().meta({
    description: 'explained_usd ÷ (explained_usd + not_matched_by_calls_usd), 0 to 1; null without either',
  }),
  not_observable_usd: usd.meta({ description: 'Charges that no call can show, free allowances among them' }),
  not_yet_observed_usd: usd.meta({ description: 'Days before the account’s first event' }),
  not_compared_usd: usd.meta({
    description:
      'Days that no run has compared since their bill last changed; by key: billed to no key, or where no call names any',
  }),
  uncounted_usd: usd.meta({
    description: 'Of explained_usd and not_matched_by_calls_usd: those whose tokens are not counted',
  }),
};

const groupSchema = z
  .strictObject({
    provider: z.string().nullable(),
    provider_account_id: z
      .string()
      .nullable()
      .meta({ description: 'Empty where calls of unknown account are compared with the sum over all' }),
    model: z
      .string()
      .nullable()
      .meta({ description: 'Null in groups that are not by model, and for days that are not compared' }),
    provider_key_id: z.string().nullable().meta({ description: 'Empty where bill or call names no key' }),
    day: z.string().nullable(),
    ...figureFields,
  })
  .meta({ id: 'CoverageGroup' });

export const coverageResponse = z.strictObject({
  group_by: z.enum(COVERAGE_GROUPS),
  from: z.string(),
  to: z.string().meta({ description: 'Last day, included' }),
  groups: z.array(groupSchema),
  ...pageFields,
  totals: z.strictObject(figureFields).meta({ description: 'Of all groups, not of the page' }),
});

/** A group's figures; the token share is null where the bills do not distinguish keys. */
export function presentFigures(days: number, figures: CoverageFigures) {
  return {
    days,
    calls: figures.calls,
    billed_tokens: usdNumberFromPico(figures.billedTokens),
    observed_tokens: usdNumberFromPico(figures.observedTokens),
    covered_tokens: usdNumberFromPico(figures.coveredTokens),
    beyond_tokens: usdNumberFromPico(figures.observedTokens - figures.coveredTokens),
    token_share: tokenShare(figures),
    billed_usd: usdNumberFromPico(figures.billedPico),
    explained_usd: usdNumberFromPico(figures.explainedPico),
    not_matched_by_calls_usd: usdNumberFromPico(figures.notMatchedPico),
    dollar_share: dollarShare(figures),
    not_observable_usd: usdNumberFromPico(figures.notObservablePico),
    not_yet_observed_usd: usdNumberFromPico(figures.notYetObservedPico),
    not_compared_usd: usdNumberFromPico(figures.notComparedPico),
    uncounted_usd: usdNumberFromPico(figures.uncountedPico),
  } satisfies z.output<z.ZodObject<typeof figureFields>>;
}

function presentCoverageGroup(group: CoverageGroup): z.output<typeof groupSchema> {
  return {
    provider: group.provider,
    provider_account_id: group.accountId,
    model: group.model,
    provider_key_id: group.providerKeyId,
    day: group.day,
    ...presentFigures(group.days, group.figures),
  };
}

/** The whole answer except its page of groups. */
export function presentCoverage(
  groupBy: (typeof COVERAGE_GROUPS)[number],
  window: { fromDay: string; toDay: string },
  groups: readonly CoverageGroup[],
  totals: { days: number; figures: CoverageFigures },
) {
  return {
    group_by: groupBy,
    from: window.fromDay,
    to: shiftDay(window.toDay, -1),
    groups: groups.map(presentCoverageGroup),
    totals: presentFigures(totals.days, totals.figures),
  };
}

/** The list as CSV. */
export const coverageCsv = csvList('coverage', 'groups', groupSchema);
