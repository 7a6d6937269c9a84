/** The text by which an escalated claim is put before a provider’s support (docs/claims.md, “Ticket draft”). */
import { timesOfBillingDay } from '../billing/billingDay.js';
import { publicId } from '../ids.js';
import { isoFromMicros, shiftDay } from '../period.js';
import { isProvider, PROVIDER_FACTS } from '../providers.js';
import { dollarsText } from './claimAmount.js';
import type { ClaimEvidence } from './evidence/claimEvidence.js';
import type { ClaimStatus } from './lifecycle.js';
import { type LabelledRow, meterParagraphs, sampleLines, usd } from './ticketLines.js';

/** Everything that is known of a claim as it is escalated, read when the draft is asked for. */
export interface TicketFacts {
  claim: {
    id: string;
    provider: string;
    accountId: string;
    periodStart: string;
    periodEnd: string;
    recoverableCents: number;
    externalTicketId: string | null;
    evidenceStaleAtMicros: bigint | null;
  };
  organization: string;
  /** In the order in which it happened. */
  events: readonly {
    to: ClaimStatus;
    atMicros: bigint;
    fields: {
      denialReason: string | null;
      creditIssuedCents: number | null;
      externalTicketId: string | null;
    };
  }[];
  disputes: readonly {
    id: string;
    model: string;
    periodStart: string;
    periodEnd: string;
    amountCents: number;
    reason: string;
  }[];
  /** Credits on later bills that may be a part of the answer. */
  credits: readonly { cents: number; rows: readonly { day: string; description: string }[] }[];
  /** Undefined where it is in a form of another version. */
  evidence: ClaimEvidence | undefined;
  rows: readonly LabelledRow[];
}

export interface TicketDraft {
  subject: string;
  body: string;
  suggestedResolution: string;
}

/** Projects that a ticket names; the attached CSV has the lines of all. */
const PROJECTS_MAX = 20;

/** What each move is to somebody who reads the correspondence. */
const MOVES: Readonly<Record<ClaimStatus, string>> = {
  draft: 'claim prepared',
  submitted_to_provider: 'claim sent to you',
  provider_acknowledged: 'you confirmed that you have it',
  under_review: 'you said that it is being looked into',
  credit_approved: 'you approved a credit',
  credit_issued: 'credited',
  denied: 'refused',
  partial: 'credited in part',
  escalated: 'escalated',
};

export function draftTicket(facts: TicketFacts): TicketDraft {
  const { claim, evidence } = facts;
  const name = providerName(claim.provider);
  const period = periodText(claim);
  const amount = dollarsText(BigInt(claim.recoverableCents));
  const account = claim.accountId === '' ? '' : ` of account ${claim.accountId}`;
  const ticket = claim.externalTicketId === null ? '' : `, ticket ${claim.externalTicketId}`;
  const suggestedResolution = `Issue a credit of ${amount} for ${period}.`;
  const sections: [string, string[]][] = [
    ['Account and bill', accountLines(facts, name)],
    ['What was charged and what we expected', evidence ? meterParagraphs(evidence, facts.rows) : []],
    ['What it comes to', totalLines(facts)],
    ['Requests that you can look up', evidence ? sampleLines(evidence.samples) : []],
    ['Correspondence so far', correspondence(facts)],
    ['What we ask for', [suggestedResolution, ...remedyLines(facts)]],
    ['Attached', attachedLines(publicId('clm', claim.id))],
  ];
  return {
    subject: `Escalation: overcharge of ${amount} on the ${name} bill${account}, ${period}${ticket}`,
    body: [
      'Hello,',
      opening(facts, name, period, amount),
      ...sections.flatMap(([title, lines]) =>
        lines.length === 0 ? [] : [`${title.toUpperCase()}\n${lines.join('\n')}`],
      ),
      `Thank you,\n${facts.organization}`,
    ].join('\n\n'),
    suggestedResolution,
  };
}

const factsOf = (slug: string) => PROVIDER_FACTS.find((facts) => facts.slug === slug);
const providerName = (slug: string): string => factsOf(slug)?.displayName ?? slug;

const periodText = ({ periodStart, periodEnd }: { periodStart: string; periodEnd: string }): string =>
  periodStart === periodEnd ? periodStart : `${periodStart} to ${periodEnd}`;

function opening({ claim }: TicketFacts, name: string, period: string, amount: string): string {
  const ticket =
    claim.externalTicketId === null
      ? 'Please open a ticket for this'
      : `This is about ticket ${claim.externalTicketId}. Please pass it on to somebody who can correct the bill`;
  return `${ticket}: the ${name} bill for ${period} charges ${amount} more than the rates and the usage below give. The evidence is attached; each of its lines names the page of your own report that it was read from.`;
}

function accountLines({ claim, organization, evidence, rows }: TicketFacts, name: string): string[] {
  const invoices = evidence?.invoice_refs ?? [];
  const named = [...new Set(invoices.flatMap(({ invoice_id }) => invoice_id ?? []))];
  const projects = [...new Set(rows.flatMap(({ project }) => project ?? []))].sort();
  return [
    `Organization: ${organization}`,
    `${name} account: ${claim.accountId === '' ? 'all accounts of the organization' : claim.accountId}`,
    ...(named.length > 0 ? [`Invoices: ${named.join(', ')}`] : []),
    ...invoices.slice(0, 10).map((one) => {
      const span = one.period_start === null ? '' : `, ${one.period_start} to ${one.period_end}`;
      return `Billing data: ${one.filename ?? `your API, ${one.source_id}`}${span}, received ${one.fetched_at.slice(0, 10)}`;
    }),
    ...(projects.length > 0
      ? [
          `${factsOf(claim.provider)?.projectsName ?? 'Projects'} on these lines: ${projects.slice(0, PROJECTS_MAX).join(', ')}`,
        ]
      : []),
    ...timeLines(claim),
    `Our reference: ${publicId('clm', claim.id)}`,
  ];
}

/** The period as the bill's days and as times of UTC. */
function timeLines({ provider, periodStart, periodEnd }: TicketFacts['claim']): string[] {
  const times = (day: string) => timesOfBillingDay(isProvider(provider) ? provider : 'unknown', day, 0);
  const [start, end] = [times(periodStart).startMicros, times(periodEnd).endMicros];
  const zone = provider === 'google' ? 'Pacific Time (America/Los_Angeles)' : 'UTC';
  return [
    `Period by the days of the bill, ${zone}: ${periodStart} 00:00 up to ${shiftDay(periodEnd, 1)} 00:00`,
    `Period in UTC: ${isoFromMicros(start)} up to ${isoFromMicros(end)}`,
  ];
}

function totalLines({ claim, evidence, disputes }: TicketFacts): string[] {
  const reasons = disputes.map(
    (one) => `- ${one.model}, ${periodText(one)}, ${dollarsText(BigInt(one.amountCents))}: ${one.reason}`,
  );
  const asked = `Asked for: ${dollarsText(BigInt(claim.recoverableCents))} (rounded down to the cent)`;
  if (!evidence) return [...reasons, asked];
  const { totals } = evidence;
  return [
    ...reasons,
    `Charged: ${usd(totals.billed_usd_exact)}`,
    `Expected: ${usd(totals.expected_usd_exact)}`,
    `Difference: ${usd(totals.disputed_usd_exact)}`,
    ...(/[1-9]/.test(totals.netted_usd_exact)
      ? [`Less what was charged too little in the same months: ${usd(totals.netted_usd_exact)}`]
      : []),
    asked,
    ...evidence.notes,
  ];
}

function correspondence({ events, claim }: TicketFacts): string[] {
  const moves = events
    .filter(({ to }) => to !== 'draft')
    .map(({ to, atMicros, fields }) => {
      const said = [
        ...(fields.externalTicketId === null ? [] : [`ticket ${fields.externalTicketId}`]),
        ...(fields.creditIssuedCents === null
          ? []
          : [`credit of ${dollarsText(BigInt(fields.creditIssuedCents))}`]),
        ...(fields.denialReason === null ? [] : [`your answer: "${fields.denialReason}"`]),
      ];
      return `- ${isoFromMicros(atMicros).slice(0, 10)}: ${[MOVES[to], ...said].join('; ')}`;
    });
  return [`Ticket: ${claim.externalTicketId ?? 'we were given no number'}`, ...moves];
}

function remedyLines({ claim, credits }: TicketFacts): string[] {
  return [
    'If you come to another amount, please send the quantity and the rate of each line that differs.',
    ...credits.map(
      ({ cents, rows }) =>
        `A credit of ${dollarsText(BigInt(cents))} (${[...new Set(rows.map(({ day, description }) => `${day}, "${description}"`))].join('; ')}) is on a later bill; please say whether it is for this claim.`,
    ),
    ...(claim.evidenceStaleAtMicros === null
      ? []
      : [
          `You have billed some of these days otherwise since ${isoFromMicros(claim.evidenceStaleAtMicros).slice(0, 10)}; the amounts above are as they were when the claim was sent.`,
        ]),
  ];
}

/** The files of the evidence under the names that they are downloaded with. */
const attachedLines = (claimId: string): string[] => [
  `- ${claimId}-evidence.pdf: the claim with its lines, rates and calls`,
  `- ${claimId}-evidence.csv: the lines as a table`,
  `- ${claimId}-evidence.tar.gz: all of it, with the pages of your reports`,
];
