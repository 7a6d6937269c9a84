/**
 * Demo Labs: 89 days of an invented company with four teams and two providers, faults planted in its bills, and
 * the answer key with their places. A pure function of seed and last day.
 */
import { type AnswerKey, answerKeyOf } from './answerKey.js';
import { firstReport } from './billed.js';
import { Calendar, DAY_COUNT, DAY_SECONDS, HOUR_SECONDS } from './calendar.js';
import { type DemoCall, makeCalls } from './calls.js';
import { ACCOUNTS, CONTRACT, KEYS } from './company.js';
import { eventOf, isReported } from './events.js';
import { type DemoFile, savedPages } from './files.js';
import { type DemoInvoice, demoInvoices } from './invoices.js';
import type { DemoProvider } from './prices.js';
import { anthropicCosts, anthropicUsage, openaiCosts, openaiUsage, type ProviderTruth } from './reports.js';
import { SCHEDULE } from './schedule.js';
import { type DemoPolicy, type DemoRule, POLICIES, RULES } from './wanted.js';

export const DEMO_SEED = 42;

/** The body of POST /api/v1/pricing/contract-rates. */
export interface DemoContractRate {
  provider: DemoProvider;
  model: '*';
  discount_percent: number;
  effective_from: string;
  effective_to: null;
  source: { document: string; clause: string };
}

/** An item of PUT /api/v1/provider-keys. */
export interface DemoProviderKey {
  provider: DemoProvider;
  provider_account_id: string;
  provider_key_id: string;
  name: string;
  project: string | null;
  team_id: string | null;
  status: 'active';
  active_from: string;
}

export interface Demo {
  seed: number;
  /** `YYYY-MM-DD`, first and last. */
  firstDay: string;
  endDay: string;
  calendar: Calendar;
  /** Items of POST /api/v1/ingest/events, oldest first. */
  events: object[];
  /** The providers' answers, for servers that replace them. */
  truth: Record<DemoProvider, ProviderTruth>;
  /** The same as saved pages in the order of saving, since OpenAI restated one day. */
  files: DemoFile[];
  /** The providers' PDF invoices, in the order of sending. */
  invoices: DemoInvoice[];
  contractRates: DemoContractRate[];
  providerKeys: DemoProviderKey[];
  policies: readonly DemoPolicy[];
  rules: readonly DemoRule[];
  answerKey: AnswerKey;
}

/** @throws RangeError if `endDay` is not a day. */
export function generateDemo(options: { seed: number; endDay: string }): Demo {
  const calendar = new Calendar(options.endDay);
  const calls = makeCalls(options.seed, calendar);
  const of = (provider: DemoProvider) => calls.filter((call) => call.provider === provider);
  const [openai, anthropic] = [of('openai'), of('anthropic')];
  return {
    seed: options.seed,
    firstDay: calendar.dayText(1 - DAY_COUNT),
    endDay: options.endDay,
    calendar,
    events: calls
      .filter(isReported)
      .sort((a, b) => a.startSeconds - b.startSeconds)
      .map(eventOf),
    truth: {
      openai: {
        accountId: ACCOUNTS.openai,
        reports: {
          costs: openaiCosts(openai, calendar),
          completions: openaiUsage(openai, HOUR_SECONDS),
        },
      },
      anthropic: {
        accountId: ACCOUNTS.anthropic,
        reports: {
          cost_report: anthropicCosts(anthropic, calendar),
          messages: anthropicUsage(anthropic, HOUR_SECONDS),
        },
      },
    },
    files: filesOf(openai, anthropic, calendar),
    invoices: demoInvoices(calls, calendar),
    contractRates: [contractRate(calendar)],
    providerKeys: Object.values(KEYS).map((key) => ({
      provider: key.provider,
      provider_account_id: ACCOUNTS[key.provider],
      provider_key_id: key.id,
      name: key.name,
      project: key.project,
      team_id: key.team,
      status: 'active',
      active_from: calendar.dayText(1 - DAY_COUNT),
    })),
    policies: POLICIES,
    rules: RULES,
    answerKey: answerKeyOf(calls, calendar),
  };
}

function contractRate(calendar: Calendar): DemoContractRate {
  return {
    provider: CONTRACT.provider,
    model: '*',
    discount_percent: CONTRACT.discountPercent,
    effective_from: calendar.dayText(CONTRACT.fromOffset),
    effective_to: null,
    source: CONTRACT.source,
  };
}

/** Recent usage is saved by the hour and earlier usage by the day, like typical requests. */
const HOURLY_DAYS = 31;

function filesOf(
  openai: readonly DemoCall[],
  anthropic: readonly DemoCall[],
  calendar: Calendar,
): DemoFile[] {
  const isRecent = (call: DemoCall) => call.offset > -HOURLY_DAYS;
  const inBoth = (
    calls: readonly DemoCall[],
    report: (some: readonly DemoCall[], widthSeconds: number) => ReturnType<typeof openaiUsage>,
  ) => [
    ...report(
      calls.filter((call) => !isRecent(call)),
      DAY_SECONDS,
    ),
    ...report(calls.filter(isRecent), HOUR_SECONDS),
  ];
  const restatedDay = openaiCosts(openai, calendar).filter(
    ({ startSeconds }) => startSeconds === calendar.startSeconds(SCHEDULE.restated.first),
  );
  return [
    savedPages('openai', 'openai-costs.json', openaiCosts(firstReport(openai), calendar)),
    savedPages('openai', 'openai-costs-restated.json', restatedDay),
    savedPages('openai', 'openai-usage-completions.json', inBoth(openai, openaiUsage)),
    savedPages('anthropic', 'anthropic-cost-report.json', anthropicCosts(anthropic, calendar)),
    savedPages('anthropic', 'anthropic-usage-messages.json', inBoth(anthropic, anthropicUsage)),
  ];
}
