import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { writeDisputesCsv } from '../../../api/claims/disputes/csv.js';
import { type DraftDispute, netDraft } from '../../../domain/claims/draft.js';
import { buildEvidence, RateRegister } from '../../../domain/claims/evidence/buildEvidence.js';
import { claimCsv } from '../../../domain/claims/evidence/claimCsv.js';
import { claimDocument } from '../../../domain/claims/evidence/claimDocument.js';
import type { ClaimEvidence } from '../../../domain/claims/evidence/claimEvidence.js';
import { cellsOfDispute } from '../../../domain/claims/evidence/claimedCells.js';
import { claimCents, claimDollars, dollarsText } from '../../../domain/claims/financialSummary.js';
import { draftTicket } from '../../../domain/claims/ticketDraft.js';
import { decimalFromPico, PICO_PER_USD, type Pico, picoFromDecimal } from '../../../domain/money.js';
import { reasonOf } from '../../../domain/reconciliation/engine/index.js';

import { aFinding, aFindingDay } from '../../support/findings.js';

const CENT = PICO_PER_USD / 100n;
const uuidOf = (at: number) => `00000000-0000-7000-8000-00000000000${at}`;
const picoOf = (exact: string): Pico => picoFromDecimal(exact) ?? 0n;
const plainCents = (figure: string) => figure.replace(/[$,]/g, '');
const AT = 1_790_000_000_000_000n;

/** Impacts of the days of one to three disputes: from a cent on, with up to twelve digits behind the point. */
const claimed = fc.array(
  fc.array(fc.bigInt({ min: CENT, max: 999n * PICO_PER_USD }), { minLength: 1, maxLength: 4 }),
  { minLength: 1, maxLength: 3 },
);

/** A dispute as a confirmation opens it. */
function disputeOf(impacts: readonly Pico[], at: number): DraftDispute {
  const finding = aFinding({
    days: impacts.map((impactPico, day) => aFindingDay(`2026-03-1${day}`, impactPico)),
  });
  const sum = (of: (day: (typeof finding.days)[number]) => Pico) =>
    finding.days.reduce((total, day) => total + of(day), 0n);
  return {
    ...{ id: uuidOf(at), findingId: uuidOf(at), model: `model-${at}`, kind: finding.kind, tier: 'HIGH' },
    ...{ provider: finding.provider, accountId: finding.accountId, notes: null, openedAtMicros: AT },
    reason: reasonOf(finding, finding.days),
    periodStart: finding.days[0]?.day ?? '',
    periodEnd: finding.days.at(-1)?.day ?? '',
    amountCents: Number(claimCents(finding.impactPico)),
    billedPico: sum((day) => day.billedPico),
    expectedPico: sum((day) => day.expectedPico),
    days: finding.days.map((day) => ({ ...day, variant: finding.variant })),
    evidence: { ...finding, runId: uuidOf(9), invoiceId: null },
  };
}

function evidenceOf(disputes: readonly DraftDispute[]): ClaimEvidence {
  const draft = netDraft(uuidOf(8), { disputes, undercharges: [] });
  if (!draft) throw new Error('there is more than a cent to ask for');
  const register = new RateRegister();
  const cells = disputes.flatMap((dispute) =>
    cellsOfDispute(dispute, { explained: [], evidence: new Map() }, register),
  );
  const none = { rows: [], quantityRows: [], toldRows: [], toldQuantity: null, pagePico: null };
  const built = buildEvidence({
    ...{ draft, register, organization: { id: uuidOf(7), name: 'Acme' }, priceVersion: '1', nowMicros: AT },
    ...{ observed: [], matches: [], invoices: [], samples: [], pages: [], notes: [] },
    cells: cells.map((cell) => ({ cell, ...none })),
    events: { file: null, included: 0, total: 0, complete: true },
  });
  return { ...built, sha256: 'f'.repeat(64) };
}

const ticketOf = (disputes: readonly DraftDispute[], evidence: ClaimEvidence) =>
  draftTicket({
    claim: {
      ...{ id: uuidOf(8), provider: 'openai', accountId: 'acc-1', externalTicketId: null },
      ...{ periodStart: evidence.claim.period_start, periodEnd: evidence.claim.period_end },
      ...{ recoverableCents: evidence.claim.total_recoverable_cents, evidenceStaleAtMicros: null },
    },
    disputes: disputes.map((one) => ({ ...one, clockHours: 0 })),
    ...{ organization: 'Acme', events: [], credits: [], evidence, rows: [] },
  });

async function csvOf(disputes: readonly DraftDispute[]): Promise<string> {
  const exported = disputes.map((one) => ({
    ...{ ...one, claimId: uuidOf(8), status: 'open' as const, resolution: null, resolvedAtMicros: null },
    amountPico: one.billedPico - one.expectedPico,
  }));
  const none = (async function* () {})();
  let text = '';
  for await (const part of writeDisputesCsv(
    { done: false, value: exported },
    none,
    new AbortController().signal,
  ))
    text += part;
  return text;
}

/** `1234.5` of `$1,234.50`. */
const plain = (figure: string) => figure.replace(/[$,]/g, '').replace(/\.?0+$/, '');

/** Each figure of dollars and cents, or of more digits, in texts. */
const figuresOf = (texts: unknown): string[] => JSON.stringify(texts).match(/\$[\d,]+\.\d+/g) ?? [];

describe('an amount of a claim', () => {
  it('is one rounded figure, or has all its digits, wherever a text shows it', async () => {
    await fc.assert(
      fc.asyncProperty(claimed, async (impacts) => {
        const disputes = impacts.map(disputeOf);
        const evidence = evidenceOf(disputes);
        const { totals } = evidence;
        const asked = [
          ...disputes.map((one) => one.billedPico - one.expectedPico),
          picoOf(totals.recoverable_usd_exact),
        ];
        const others = [
          ...disputes.flatMap((one) =>
            one.days.flatMap((day) => [day.billedPico, day.expectedPico, day.impactPico]),
          ),
          ...[totals.billed_usd_exact, totals.expected_usd_exact, totals.disputed_usd_exact].map(picoOf),
          ...disputes.flatMap((one) => [one.billedPico, one.expectedPico]),
        ];
        // The document's summary sums: the right amount is the charge less the difference, as displayed.
        const charged = claimCents(picoOf(totals.billed_usd_exact));
        const summed = [charged, charged - claimCents(picoOf(totals.disputed_usd_exact))];
        const right = new Set([
          ...asked.map((pico) => plain(claimDollars(pico))),
          ...summed.map((cents) => plain(dollarsText(cents))),
          ...[...asked, ...others].map(decimalFromPico),
        ]);
        const texts = [
          claimDocument(evidence),
          ticketOf(disputes, evidence),
          await csvOf(disputes),
          evidence,
        ];
        expect(figuresOf(texts).filter((figure) => !right.has(plain(figure)))).toEqual([]);
      }),
    );
  });

  it('is asked for in the same cents in every place', async () => {
    await fc.assert(
      fc.asyncProperty(claimed, async (impacts) => {
        const disputes = impacts.map(disputeOf);
        const evidence = evidenceOf(disputes);
        const cents = claimCents(impacts.flat().reduce((sum, one) => sum + one, 0n));
        const shown = dollarsText(cents);
        expect([evidence.totals.recoverable_cents, evidence.claim.total_recoverable_cents]).toEqual([
          Number(cents),
          Number(cents),
        ]);
        const document = claimDocument(evidence);
        const ticket = ticketOf(disputes, evidence);
        for (const text of [
          document.title,
          document.remedy,
          document.sums.at(-1)?.value,
          evidence.requested_remedy,
          ticket.subject,
          ticket.suggestedResolution,
        ])
          expect(text).toContain(shown);
        expect(claimCsv(evidence)).toContain(`,credit requested,${','.repeat(11)}${plainCents(shown)},\r\n`);
        const rows = (await csvOf(disputes)).split('\r\n').slice(1);
        for (const [at, dispute] of disputes.entries()) {
          const figure = dollarsText(BigInt(dispute.amountCents));
          expect(dispute.reason).toContain(` ${figure} too much `);
          const shownRow = document.faults
            .flatMap(({ findings }) => findings.rows)
            .find(([model]) => model === dispute.model);
          expect(shownRow?.at(-1)).toBe(figure);
          expect(rows[at]).toContain(`,${dispute.amountCents},HIGH,`);
          expect(rows[at]).toContain(` ${figure} too much `);
          expect(ticket.body).toContain(`, ${figure}: ${dispute.reason}`);
        }
      }),
    );
  });
});
