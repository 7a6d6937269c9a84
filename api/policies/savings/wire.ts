import { z } from 'zod';
import type { PreventedSums } from '../../../db/policies/enforcementRules.js';
import type { ModeledCall, ModeledRule } from '../../../db/policies/modeledSavings.js';
import type { SavingsPeriod, SavingsRun } from '../../../db/policies/savingsRuns.js';
import { footCents } from '../../../domain/footing.js';
import { publicId } from '../../../domain/ids.js';
import { decimalFromPico, type Pico, usdNumberFromPico, usdNumberOrNull } from '../../../domain/money.js';
import { isoFromMicros, isoOrNull, MICROS_PER_DAY } from '../../../domain/period.js';
import { UNJUDGED_REASONS } from '../../../domain/policies/enforcement/judges.js';
import {
  MODELED_ACTIONS,
  SAVINGS_CAUSES,
  UNPRICED_REASONS,
} from '../../../domain/policies/enforcement/replay.js';
import type { Savings } from '../../../usecases/policies/savings.js';
import { offsetParameters, PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX, pageFields } from '../../paging.js';
import { instantParameter, integerParameter, withDefault } from '../../query.js';
import {
  presentProgress,
  presentRunEnd,
  progressSchema,
  runEndFields,
  runStatusSchema,
} from '../../runs/runWire.js';
import { presentRuleFields, ruleFields } from '../enforcement/wire.js';

export const SAVINGS_RUNS_PATH = '/api/v1/enforcement/savings/runs';

export const FROM_MEANING = 'First time of the calls; a date means its beginning. With to, or neither';
export const TO_MEANING = 'Last time, included; a date means its end';

const usd = z.number().meta({ description: 'To the cent' });
const exact = z.string().meta({ description: 'The same amount to the pico-dollar' });

export const savingsRunBody = z
  .strictObject({
    from: instantParameter.optional().meta({ type: 'string', description: FROM_MEANING }),
    to: instantParameter.optional().meta({ type: 'string', description: TO_MEANING }),
  })
  .meta({ id: 'SavingsRunRequest' });

export const listSavingsRunsQuery = z.object({
  status: runStatusSchema.optional(),
  ...offsetParameters(100, 20),
});

export const savingsRunSchema = z
  .strictObject({
    id: z.string().meta({ example: 'run_0199f3a2c4d57e3a8f00112233445566' }),
    run_id: z.string(),
    kind: z.literal('savings_run'),
    status: runStatusSchema,
    from: z.string(),
    to: z.string(),
    standard: z
      .boolean()
      .meta({ description: 'Of the 30 days before it was opened; else of a named period' }),
    cause: z.enum(SAVINGS_CAUSES),
    progress: progressSchema.meta({ description: 'In days of 24 hours' }),
    result: z
      .strictObject({
        as_of: z.string(),
        price_version: z.string(),
        calls: z.int(),
        blocked_calls: z.int(),
        downgraded_calls: z.int(),
        preventable_modeled_usd: usd,
        preventable_modeled_usd_exact: exact,
      })
      .nullable()
      .meta({ description: 'Null until the run has succeeded' }),
    ...runEndFields('A run of the same period is under way: this is that run'),
  })
  .meta({ id: 'SavingsRun' });

export const listSavingsRunsResponse = z.strictObject({ runs: z.array(savingsRunSchema), ...pageFields });

/** The address of a run's state. */
export function savingsRunUrl({ id }: SavingsRun): string {
  return `${SAVINGS_RUNS_PATH}/${publicId('run', id)}`;
}

/** Days of the period, and how many of them the run has completed. */
function daysOf(run: SavingsRun): { done: number; total: number } {
  const between = (micros: bigint) => Number((micros - run.windowStartMicros) / MICROS_PER_DAY);
  const total = between(run.windowEndMicros - 1n) + 1;
  if (run.status === 'succeeded') return { done: total, total };
  return { done: run.cursorMicros === null ? 0 : between(run.cursorMicros), total };
}

export function presentSavingsRun(run: SavingsRun): z.output<typeof savingsRunSchema> {
  const id = publicId('run', run.id);
  return {
    id,
    run_id: id,
    kind: 'savings_run',
    status: run.status,
    from: isoFromMicros(run.windowStartMicros),
    to: isoFromMicros(run.windowEndMicros - 1n),
    standard: run.isStandard,
    cause: run.cause,
    progress: presentProgress({ ...run, ...daysOf(run) }),
    result:
      run.savedPico === null
        ? null
        : {
            as_of: isoOrNull(run.asOfMicros) ?? '',
            price_version: run.priceVersion ?? '',
            calls: run.calls,
            blocked_calls: run.blocked,
            downgraded_calls: run.downgraded,
            preventable_modeled_usd: usdNumberFromPico(footCents([run.savedPico]).totalPico),
            preventable_modeled_usd_exact: decimalFromPico(run.savedPico),
          },
    ...presentRunEnd(run, savingsRunUrl(run)),
  };
}

export const SAVINGS_PATH = '/api/v1/enforcement/savings';
export const SAVINGS_CALLS_PATH = `${SAVINGS_PATH}/calls`;

export const savingsQuery = z.object({
  from: instantParameter.optional().meta({ description: FROM_MEANING }),
  to: instantParameter.optional().meta({ description: TO_MEANING }),
});

export const listSavingsCallsQuery = z.object({
  rule_id: z.string().optional().meta({ description: 'Calls of this rule alone' }),
  run_id: z.string().optional().meta({ description: 'Of this run’s result instead of the newest one' }),
  limit: withDefault(integerParameter(1, PAGE_LIMIT_MAX), PAGE_LIMIT_DEFAULT),
  cursor: z.string().max(1_024, { error: 'is not a cursor of this list' }).optional(),
});

const preventedFields = {
  calls: z.int(),
  calls_without_amount: z
    .int()
    .meta({ description: 'Calls without a stated cost: not in the amount, and not free' }),
  prevented_usd: usd,
  prevented_usd_exact: exact,
};

const reasonsOf = <T extends string>(reasons: readonly T[]) =>
  z.array(z.strictObject({ reason: z.enum(reasons), calls: z.int() }));

const modeledRuleSchema = z
  .strictObject({
    rule_id: z.string(),
    ...withoutId(ruleFields),
    asked_calls: z.int().meta({ description: 'Calls of its scope that no rule before it had blocked' }),
    blocked_calls: z.int(),
    downgraded_calls: z.int(),
    preventable_modeled_usd: usd,
    preventable_modeled_usd_exact: exact,
    unpriced_calls: z
      .int()
      .meta({ description: 'Of the blocked and downgraded ones, those of which no amount is known' }),
    unpriced: reasonsOf(UNPRICED_REASONS),
    unjudged_calls: z.int().meta({ description: 'Of the asked ones, those that it could not judge' }),
    unjudged: reasonsOf(UNJUDGED_REASONS),
    forgotten: z.int().meta({
      description:
        'Above 0: so many sessions or prompts were forgotten for want of room, and it is not exact',
    }),
  })
  .meta({ id: 'ModeledRule' });

function withoutId<T extends { id: unknown }>({ id: _, ...rest }: T): Omit<T, 'id'> {
  return rest;
}

export const savingsResponse = z
  .strictObject({
    from: z.string(),
    to: z.string(),
    prevented_usd: usd.meta({ description: 'What wrappers say that they have blocked, to the cent' }),
    prevented_usd_exact: exact,
    prevented: z.strictObject({
      calls: z.int(),
      calls_without_amount: z.int(),
      by_rule: z
        .array(
          z.strictObject({
            rule_id: z
              .string()
              .nullable()
              .meta({ description: 'As the calls name it; null: they name none' }),
            rule: z
              .strictObject({ ...ruleFields, removed_at: z.string().nullable() })
              .nullable()
              .meta({ description: 'The organization’s rule of this id, removed ones too' }),
            ...preventedFields,
          }),
        )
        .meta({ description: 'The most prevented first; with by_other_rules it adds up to prevented_usd' }),
      by_other_rules: z.strictObject(preventedFields).nullable(),
    }),
    preventable_modeled_usd: usd.nullable().meta({
      description: 'What the rules would have saved, to the cent; null before anything was modeled',
    }),
    preventable_modeled_usd_exact: exact.nullable(),
    modeled: z
      .strictObject({
        run_id: z.string(),
        from: z.string(),
        to: z.string(),
        as_of: z.string().meta({ description: 'Whatever was stored before is in it' }),
        price_version: z.string(),
        calls: z.int().meta({ description: 'Calls that were compared with the rules' }),
        by_rule: z.array(modeledRuleSchema).meta({
          description: 'As the rules were then, in the order in which they are asked; adds up to the total',
        }),
      })
      .nullable(),
    open_run: z
      .strictObject({ run_id: z.string(), status_url: z.string() })
      .nullable()
      .meta({ description: 'A newer result of the same period is on its way' }),
  })
  .meta({ id: 'EnforcementSavings' });

export const listSavingsCallsResponse = z.strictObject({
  run_id: z.string().nullable().meta({ description: 'Whose result it is; null before there is any' }),
  calls: z
    .array(
      z
        .strictObject({
          event_id: z.string(),
          timestamp: z.string(),
          rule_id: z.string(),
          action: z.enum(MODELED_ACTIONS),
          saved_usd: z.number().nullable().meta({ description: 'Null: not known, see unpriced_reason' }),
          saved_usd_exact: z.string().nullable(),
          unpriced_reason: z.enum(UNPRICED_REASONS).nullable(),
          event: z
            .strictObject({
              provider: z.string(),
              model: z.string(),
              session_id: z.string(),
              team_id: z.string().nullable(),
              feature: z.string().nullable(),
              cost_usd: z.number(),
            })
            .nullable()
            .meta({ description: 'As it stands now; null: it is not kept any more' }),
        })
        .meta({ id: 'ModeledCall' }),
    )
    .meta({ description: 'Newest first' }),
  count: z.int(),
  has_more: z.boolean(),
  next_cursor: z.string().nullable(),
});

function countsOf<T extends string>(counts: Partial<Record<T, number>>, reasons: readonly T[]) {
  const listed = reasons.flatMap((reason) => {
    const calls = counts[reason] ?? 0;
    return calls === 0 ? [] : [{ reason, calls }];
  });
  return { listed, total: listed.reduce((sum, { calls }) => sum + calls, 0) };
}

function presentPrevented(sums: PreventedSums, shownPico: Pico) {
  return {
    calls: sums.calls,
    calls_without_amount: sums.callsWithoutAmount,
    prevented_usd: usdNumberFromPico(shownPico),
    prevented_usd_exact: decimalFromPico(sums.preventedPico),
  };
}

function presentModeledRule(
  { rule, findings }: ModeledRule,
  shownPico: Pico,
): z.output<typeof modeledRuleSchema> {
  const unpriced = countsOf(findings.unpriced, UNPRICED_REASONS);
  const unjudged = countsOf(findings.unjudged, UNJUDGED_REASONS);
  const { id, ...told } = presentRuleFields(rule);
  return {
    rule_id: id,
    ...told,
    asked_calls: findings.asked,
    blocked_calls: findings.blocked,
    downgraded_calls: findings.downgraded,
    preventable_modeled_usd: usdNumberFromPico(shownPico),
    preventable_modeled_usd_exact: decimalFromPico(findings.savedPico),
    unpriced_calls: unpriced.total,
    unpriced: unpriced.listed,
    unjudged_calls: unjudged.total,
    unjudged: unjudged.listed,
    forgotten: findings.forgotten,
  };
}

export function presentSavings(
  { windowStartMicros, windowEndMicros }: SavingsPeriod,
  { prevented, result: modeled, open }: Savings,
): z.output<typeof savingsResponse> {
  const { totals, rules, others } = prevented;
  const sums = others ? [...rules, others] : rules;
  const spent = footCents(sums.map(({ preventedPico }) => preventedPico));
  const savedPico = modeled?.run.savedPico ?? null;
  const saved = modeled && footCents(modeled.rules.map(({ findings }) => findings.savedPico));
  return {
    from: isoFromMicros(windowStartMicros),
    to: isoFromMicros(windowEndMicros - 1n),
    prevented_usd: usdNumberFromPico(spent.totalPico),
    prevented_usd_exact: decimalFromPico(totals.preventedPico),
    prevented: {
      calls: totals.calls,
      calls_without_amount: totals.callsWithoutAmount,
      by_rule: rules.map((one, index) => ({
        rule_id: one.ruleText,
        rule: one.rule && { ...presentRuleFields(one.rule), removed_at: isoOrNull(one.rule.removedAtMicros) },
        ...presentPrevented(one, spent.partsPico[index] ?? 0n),
      })),
      by_other_rules: others && presentPrevented(others, spent.partsPico[rules.length] ?? 0n),
    },
    preventable_modeled_usd: saved ? usdNumberFromPico(saved.totalPico) : null,
    preventable_modeled_usd_exact: savedPico === null ? null : decimalFromPico(savedPico),
    modeled:
      modeled && saved
        ? {
            run_id: publicId('run', modeled.run.id),
            from: isoFromMicros(modeled.run.windowStartMicros),
            to: isoFromMicros(modeled.run.windowEndMicros - 1n),
            as_of: isoOrNull(modeled.run.asOfMicros) ?? '',
            price_version: modeled.run.priceVersion ?? '',
            calls: modeled.run.calls,
            by_rule: modeled.rules.map((rule, index) =>
              presentModeledRule(rule, saved.partsPico[index] ?? 0n),
            ),
          }
        : null,
    open_run: open ? { run_id: publicId('run', open.id), status_url: savingsRunUrl(open) } : null,
  };
}

function presentModeledCall(call: ModeledCall): z.output<typeof listSavingsCallsResponse>['calls'][number] {
  const { event } = call;
  return {
    event_id: publicId('evt', call.eventId),
    timestamp: isoFromMicros(call.timestampMicros),
    rule_id: publicId('rul', call.ruleId),
    action: call.action,
    saved_usd: usdNumberOrNull(call.savedPico),
    saved_usd_exact: call.savedPico === null ? null : decimalFromPico(call.savedPico),
    unpriced_reason: call.unpricedReason,
    event: event && {
      provider: event.provider,
      model: event.model,
      session_id: event.sessionId,
      team_id: event.teamId,
      feature: event.feature,
      cost_usd: usdNumberFromPico(event.costPico),
    },
  };
}

export function presentSavingsCalls(
  run: SavingsRun | undefined,
  calls: readonly ModeledCall[],
  hasMore: boolean,
  nextCursor: string | null,
): z.output<typeof listSavingsCallsResponse> {
  return {
    run_id: run ? publicId('run', run.id) : null,
    calls: calls.map(presentModeledCall),
    count: calls.length,
    has_more: hasMore,
    next_cursor: nextCursor,
  };
}
