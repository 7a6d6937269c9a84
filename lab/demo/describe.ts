/**
 * Writes docs/demo.md: every planted fault with its dollars and the place to see it. Days are offsets, so the text
 * holds for any last day.
 */
import type { AnswerKey, PlantedGap, PlantedRate } from './answerKey.js';
import { DAY_COUNT } from './calendar.js';
import { CONTRACT, TRAFFIC } from './company.js';
import { explanationCommands, explanationLines } from './describeFindings.js';
import { exact, type Fault } from './describeWords.js';
import { DEMO_SEED, type Demo } from './generateDemo.js';
import type { InvoiceFault } from './invoices.js';
import { MISSING_HOURS, SCHEDULE } from './schedule.js';
import { BUDGET_USD, DEAR_CENTS } from './wanted.js';

/** The input of the document. Its text is the same for every last day, which a test checks. */
export const DOCUMENTED = { seed: DEMO_SEED, endDay: '2026-11-20' };

const dayText = (offset: number): string => (offset === 0 ? 'day 0' : `day −${-offset}`);

function daysText({ first, last }: { first: number; last: number }): string {
  return first === last ? dayText(first) : `${dayText(first)} to ${last === 0 ? '0' : `−${-last}`}`;
}

const sum = (values: readonly bigint[]): bigint => values.reduce((total, value) => total + value, 0n);

const rateTotal = (key: AnswerKey, kind: PlantedRate['kind']) =>
  sum(key.rates.filter((rate) => rate.kind === kind).map((rate) => rate.excessPico));
const flaggedDays = (key: AnswerKey, kind: PlantedGap['kind']) =>
  countText(key.gaps.filter((gap) => gap.kind === kind).length, 'flagged model-day');
const rateLines = (key: AnswerKey, kind: PlantedRate['kind']) =>
  countText(key.rates.filter((rate) => rate.kind === kind).length, 'rate');
const countText = (count: number, of: string) => `${count} ${of}${count === 1 ? '' : 's'}`;
const thousands = (count: number) => String(count).replace(/\B(?=(\d{3})+$)/g, ',');
const gapTotal = (key: AnswerKey, kind: PlantedGap['kind']) =>
  sum(key.gaps.filter((gap) => gap.kind === kind).map((gap) => gap.gapPico));

const FLAGGED = '/reconciliation/gap-explorer?period=90d&flagged=true';
const flaggedOf = (select: string) => `get '${FLAGGED}' | jq '.gaps[] | select(${select})'`;
const RUN = `get '/reconciliation/gap-explorer/runs?limit=1' | jq '.runs[0].result.rate_mismatches[]`;

function billingFaults(key: AnswerKey): Fault[] {
  return [
    {
      title: 'A stale price',
      planted: 'stale_price',
      days: SCHEDULE.stalePrice,
      amount: rateTotal(key, 'stale_price'),
      what: 'OpenAI charges gpt-5.6-terra at the price of before 2026-07-30 (2.50 and 15 instead of 2 and 12 dollars per million tokens), in every class.',
      shows: `${flaggedDays(key, 'stale_price')} whose gap is all rate, and ${rateLines(key, 'stale_price')} that do not fit`,
      curl: `${RUN} | select(.model == "gpt-5.6-terra")'`,
    },
    {
      title: 'A day billed twice',
      planted: 'doubled_day',
      days: SCHEDULE.doubled,
      amount: gapTotal(key, 'doubled_day'),
      what: 'OpenAI’s whole bill of the day stands in its cost report twice; its usage report counts the calls once.',
      shows: `${flaggedDays(key, 'doubled_day')}, billed exactly twice what our calls cost; the gap is all quantity`,
      curl: flaggedOf('.provider == "openai" and .gap_parts.volume_usd > 0 and .unobserved_minutes == null'),
    },
    {
      title: 'Cached tokens at the full rate',
      planted: 'cache_at_full_rate',
      days: SCHEDULE.cacheAtFullRate,
      amount: rateTotal(key, 'cache_at_full_rate'),
      what: 'OpenAI charges cached input of gpt-6-sol like fresh input: ten times its rate.',
      shows: `${flaggedDays(key, 'cache_at_full_rate')}, and \`cache_read\` at 2 (long requests: 4) instead of 0.20 (0.40) dollars per million`,
      curl: `${RUN} | select(.token_class == "cache_read" and .model == "gpt-6-sol")'`,
    },
    {
      title: 'The contract’s discount forgotten',
      planted: 'contract_discount_not_applied',
      days: SCHEDULE.contractForgotten,
      amount: rateTotal(key, 'contract_discount_not_applied'),
      what: `Anthropic charges list prices, though ${CONTRACT.source.document}, clause ${CONTRACT.source.clause}, gives ${CONTRACT.discountPercent} % on everything since ${dayText(CONTRACT.fromOffset)}.`,
      shows: `${flaggedDays(key, 'contract_discount_not_applied')}, and ${rateLines(key, 'contract_discount_not_applied')} that do not fit: every model, class and batch`,
      curl: `${RUN} | select(.provider == "anthropic")'`,
    },
    {
      title: 'The batch discount forgotten',
      planted: 'batch_discount_not_applied',
      days: SCHEDULE.batchForgotten,
      amount: rateTotal(key, 'batch_discount_not_applied'),
      what: 'Anthropic charges batches of claude-haiku-4-5 like ordinary requests: twice their rate.',
      shows: `${flaggedDays(key, 'batch_discount_not_applied')}, and ${rateLines(key, 'batch_discount_not_applied')} of batch lines that are twice the agreed ones`,
      curl: `${RUN} | select(.is_batch and (.billed_rate_per_mtok / .list_rate_per_mtok | round) == 2)'`,
    },
    {
      title: 'A key that nobody knows',
      planted: 'unknown_key',
      days: SCHEDULE.strayKey,
      amount: gapTotal(key, 'unknown_key'),
      what: `Key \`${key.strayKey.keyId}\` uses gpt-4o. No client of Demo Labs calls that model, and no entry of its key registry has that key.`,
      shows: `${flaggedDays(key, 'unknown_key')} that are unmatched, and the key under \`unknown\` of the key registry`,
      curl: `get '/reconciliation/gap-explorer?period=90d&flagged_only=true'; get '/provider-keys'`,
    },
  ];
}

function ownFaults(key: AnswerKey): Fault[] {
  return [
    {
      title: 'Five hours without our SDK',
      days: SCHEDULE.missingWindow,
      amount: gapTotal(key, 'missing_window'),
      what: `From ${MISSING_HOURS.from}:00 to ${MISSING_HOURS.to}:00 UTC no call of OpenAI’s was reported. The bill is right; our record is not.`,
      shows: `${flaggedDays(key, 'missing_window')} with \`unobserved_minutes\` 300; the gap is all quantity`,
      curl: flaggedOf('.unobserved_minutes == 300'),
    },
    {
      title: 'A runaway loop',
      days: SCHEDULE.runawayLoop,
      amount: key.runawayLoop.pico,
      what: `An agent reviews one change ${key.runawayLoop.events} times in one night. Billed rightly, and dear.`,
      shows: `session \`${key.runawayLoop.sessionId}\` above all others of its day`,
      curl: `get "/dashboard/breakdown/session?since=$(day ${SCHEDULE.runawayLoop.first})&until=$(day ${SCHEDULE.runawayLoop.first})" | jq '.items[0]'`,
    },
    {
      title: 'Calls without a team',
      days: SCHEDULE.unlabelled,
      amount: key.unlabelled.pico,
      what: `Nightly jobs send no team_id: ${thousands(key.unlabelled.events)} calls that nobody can be charged for.`,
      shows: 'the key `<unset>` of the breakdown by team',
      curl: `get "/dashboard/breakdown/team?since=$(day -89)" | jq '.items[] | select(.key == "<unset>")'`,
    },
    {
      title: 'A production key in staging',
      days: SCHEDULE.staging,
      amount: key.staging.pico,
      what: `For an afternoon ${key.staging.events} calls with key \`${key.staging.keyId}\` come from the environment staging.`,
      shows: 'events with `environment` staging',
      curl: `get "/events?feature=semantic-search&since=$(day ${SCHEDULE.staging.first})&until=$(day ${SCHEDULE.staging.first})&limit=1000" | jq '.events[] | select(.environment == "staging")'`,
    },
  ];
}

function otherThings(key: AnswerKey, demo: Demo): string[] {
  return [
    `| A credit | ${dayText(key.credit.offset)} | ${exact(key.credit.pico)} | OpenAI’s “Promotional credit”: in the statement as a credit, never netted into usage |`,
    `| Tool fees | every day | ${exact(key.toolFees.openai)} at OpenAI, ${exact(key.toolFees.anthropic)} at Anthropic | web searches, which no call shows: lines of their own, unmatched and never flagged |`,
    `| A restated day | ${dayText(key.restated.offset)} | ${exact(key.restated.addedPico)} more | OpenAI states the day a second time; the later copy counts, \`source_differences\` of the run names both |`,
    `| Two prompts with secrets | ${daysText(SCHEDULE.secrets)} | | events ${key.secrets.requestIds.map((id) => `\`${id}\``).join(' and ')} (request_id); the secrets are invented |`,
    `| A contract | from ${dayText(CONTRACT.fromOffset)} | ${CONTRACT.discountPercent} % | \`get /pricing/contract-rates\`: what is agreed with Anthropic, with its document |`,
    `| A key registry | | ${demo.providerKeys.length} keys | \`get /provider-keys\` |`,
  ];
}

function policyLines(key: AnswerKey): string[] {
  const { unapproved } = key.wanted;
  return [
    `| \`approved_models\` | the models that it uses, by the names that it uses | ${unapproved.requestIds.length}, which ask for \`${unapproved.model}\` on ${dayText(SCHEDULE.preview.first)} |`,
    `| \`banned_patterns\` | no password and no token in a prompt | ${key.secrets.requestIds.length}: the prompts with secrets |`,
    `| \`key_environment_check\` | its keys in production alone | ${key.staging.events}: the production key in staging |`,
    `| \`approval_required_threshold_cents\` | no call of ${DEAR_CENTS} cents or more | about thirty code reviews; how many depends on where the weekends lie |`,
  ];
}

const INVOICE_FAULTS: Record<InvoiceFault, string> = {
  line_twice: 'A line twice: the web searches of the month are charged in two lines',
  wrong_tax: 'A wrong tax: more than 8.25 % of the subtotal, so that the invoice contradicts itself',
  month_twice: 'A month billed twice: the days of the first invoice under another number',
};

function invoiceLines({ invoices }: Demo): string[] {
  return invoices.map(
    ({ provider, number, days, fault, faultPico }) =>
      `| ${provider === 'openai' ? 'OpenAI' : 'Anthropic'} ${number} | ${daysText(days)} | ${INVOICE_FAULTS[fault]} | ${faultPico === null ? 'the whole invoice' : exact(faultPico)} |`,
  );
}

/** The document; the same for every last day. */
export function describeDemo(demo: Demo): string {
  const { answerKey: key } = demo;
  const faults = [...billingFaults(key), ...ownFaults(key)];
  const excess = sum(key.rates.map((rate) => rate.excessPico));
  const models = new Set(TRAFFIC.map(({ model }) => model)).size;
  const teams = new Set(TRAFFIC.flatMap(({ team }) => (team === null ? [] : [team]))).size;
  const features = new Set(TRAFFIC.map(({ feature }) => feature)).size;
  return `# The demo: Demo Labs

\`npm run demo\` loads an invented company into an organization of its own: ${DAY_COUNT} days, ${teams} teams, ${features} features, ${models} models of
OpenAI and Anthropic, about 45,000 calls and the bills for them. It is loaded through the public API, like a customer's data, and the
terminal shows the findings. \`DEMO=1 npm start\` does the same at the start. \`./trueup demo reset\` removes the organization with
all of its rows, and no other.

\`POST /api/v1/demo\` loads it into a running service (scope \`org:admin\`) and answers with a run. Its result has a
one-time link that signs a browser in to Demo Labs. \`DELETE /api/v1/demo\` removes it, as \`./trueup demo reset\` does.

The bills contain planted mistakes. This page lists each of them, so that Trueup's findings can be compared. It is generated by
\`npm run demo:docs\` from the generator's answer key, which uses its own price table.

Day 0 is the demo's last day: the day before it was loaded, in UTC. Day −37 is 37 days before it. The faults
are the same to the last digit on any day; only the weekends of the calendar change the traffic between them.

## Planted mistakes

| fault | days | dollars | shows as |
|---|---|---|---|
${faults.map((fault) => `| ${fault.title} | ${daysText(fault.days)} | ${exact(fault.amount)} | ${fault.shows} |`).join('\n')}

Overcharged by rate in all: ${exact(excess)}. Nothing else is flagged, and no other rate differs.

## Findings

Each fault of the bills produces findings of one kind, one for each model, with exact days and dollars. No other mistake of a provider is found
above LOW, and nothing stays unexplained. The hours without our SDK are no mistake of a bill: \`unobserved_usage\` reports for each of
their three models that fewer calls were seen than usual, and none of it is recoverable. \`get /financial/summary\` adds up what is
recoverable.
Publicly reported mistakes are tested in the same way ([decision 19](decisions/0019-bills-for-judging-are-generated-independently.md)).

| fault | explanation | findings | grade | dollars |
|---|---|---|---|---|
${explanationLines(key, faults).join('\n')}

## Other data

| what | days | dollars | where |
|---|---|---|---|
${otherThings(key, demo).join('\n')}

## Invoices

Three invoices, set as PDF, charge what the bills contain, to the cent. Each has a fault that no bill shows.

| invoice | days | fault | dollars |
|---|---|---|---|
${invoiceLines(demo).join('\n')}

## Policies and rules

Demo Labs has a policy of each type, put before its calls arrived: a call that breaks one is in the alerts feed. The bills contain nothing
for them; a call that breaks a policy is billed as any other.

| policy | what it wants | calls that break it |
|---|---|---|
${policyLines(key).join('\n')}

Two enforcement rules only observe: they stopped nothing, and a replay of the calls shows what they would have saved.

| rule | would have saved |
|---|---|
| No session of code reviews spends more than ${BUDGET_USD} dollars | ${exact(key.wanted.budget.pico)}: the ${key.wanted.budget.calls} last calls of the runaway loop |
| Drafts that ask for gpt-5.6-terra go to gpt-6-sol | the difference in the price of output; how much depends on where the weekends lie |

## See it

The commands need \`curl\` and \`jq\`.

\`\`\`sh
get() { curl -s -H "Authorization: Bearer $(cat .data/demo-key)" "http://localhost:3000/api/v1$1"; }
day() { node -p "new Date(Date.parse(require('./.data/demo.json').endDay) + $1 * 864e5).toISOString().slice(0, 10)"; }
\`\`\`

${faults.map((fault) => section(key, fault)).join('\n')}
### Alerts and savings

\`\`\`sh
get '/alerts?policy_type=approved_models' | jq '.alerts[] | {message, event_timestamp}'
get '/alerts?severity=high&limit=1000' | jq '[.alerts[].policy_type] | group_by(.) | map({(.[0]): length}) | add'
get "/enforcement/savings?from=$(day -90)&to=$(day 0)" | jq '.modeled.by_rule[] | {name, preventable_modeled_usd}'
\`\`\`

### The month and the rates in whole

\`\`\`sh
get "/reconciliation/statement?period=$(get /reconciliation/summary | jq -r .period)" | jq .total
get '/reconciliation/audit?provider=openai'; get '/reconciliation/audit?provider=anthropic'
./trueup audit --provider anthropic --org $(node -p "require('./.data/demo.json').organization")
\`\`\`
`;
}

function section(key: AnswerKey, fault: Fault): string {
  return `### ${fault.title}: ${daysText(fault.days)}, ${exact(fault.amount)}

${fault.what} Shows as ${fault.shows}.

\`\`\`sh
${[fault.curl, ...explanationCommands(key, fault)].join('\n')}
\`\`\`
`;
}
