/** That the lines of a claim add up: by day, by dispute, in all, and to the cents that are asked for. */
import { amountOf, assertSame, textOf } from './checkCells.js';
import { Difference } from './difference.js';
import type { JsonNode } from './exactJson.js';
import { decimalText, ONE } from './exactNumbers.js';
import type { Checked } from './verifyPack.js';

const CLAIM = 'claim.json';
const PARTS = ['billed_usd_exact', 'expected_usd_exact', 'difference_usd_exact'] as const;

export function checkSums(claim: JsonNode): Checked[] {
  const list = (name: string) => claim.fields.get(name)?.items ?? [];
  const cells = new Map<string, JsonNode[]>();
  for (const cell of list('cells')) {
    const key = `${textOf(cell, 'dispute_id')} ${textOf(cell, 'day')}`;
    cells.set(key, [...(cells.get(key) ?? []), cell]);
  }
  let days = 0;
  for (const dispute of list('disputes')) {
    const own = dispute.fields.get('days')?.items ?? [];
    for (const day of own) {
      const key = `${textOf(dispute, 'dispute_id')} ${textOf(day, 'day')}`;
      const ofDay = cells.get(key) ?? [];
      cells.delete(key);
      for (const name of PARTS) assertSame(day, name, sumOf(ofDay, name), 'its lines come to');
      const parts =
        amountOf(day, 'rate_usd_exact') + amountOf(day, 'volume_usd_exact') + amountOf(day, 'own_usd_exact');
      assertSame(day, 'difference_usd_exact', parts, 'its parts come to');
      if (amountOf(day, 'own_usd_exact') === 0n && ofDay.some((cell) => textOf(cell, 'basis') === 'rates'))
        assertSame(day, 'rate_usd_exact', sumOf(ofDay, 'rate_usd_exact'), 'its lines come to');
    }
    for (const name of PARTS) assertSame(dispute, name, sumOf(own, name), 'its days come to');
    assertCents(dispute, 'amount_cents', amountOf(dispute, 'difference_usd_exact'));
    days += own.length;
  }
  const [orphan] = [...cells.values()].flat();
  if (orphan) throw new Difference(CLAIM, orphan.line, 'the line is of no day of a dispute');
  checkTotals(claim, list);
  return [
    { what: 'days and disputes that are the sum of their lines', count: days, note: '' },
    { what: 'totals, netted undercharges, cents', count: list('undercharges').length + 1, note: '' },
  ];
}

function checkTotals(claim: JsonNode, list: (name: string) => readonly JsonNode[]): void {
  const totals = claim.fields.get('totals');
  const head = claim.fields.get('claim');
  if (!totals || !head) throw new Difference(CLAIM, claim.line, 'has no totals');
  const disputes = list('disputes');
  assertSame(totals, 'billed_usd_exact', sumOf(disputes, 'billed_usd_exact'), 'the disputes come to');
  assertSame(totals, 'expected_usd_exact', sumOf(disputes, 'expected_usd_exact'), 'the disputes come to');
  const disputed = sumOf(disputes, 'difference_usd_exact');
  assertSame(totals, 'disputed_usd_exact', disputed, 'the disputes come to');
  for (const one of list('undercharges')) {
    const difference = amountOf(one, 'billed_usd_exact') - amountOf(one, 'expected_usd_exact');
    assertSame(one, 'difference_usd_exact', difference, 'billed less expected is');
  }
  const netted = -sumOf(list('undercharges'), 'difference_usd_exact');
  assertSame(totals, 'netted_usd_exact', netted, 'the undercharges come to');
  assertSame(totals, 'recoverable_usd_exact', disputed - netted, 'disputed less netted is');
  assertCents(totals, 'recoverable_cents', disputed - netted);
  assertCents(head, 'total_recoverable_cents', disputed - netted);
  const days = disputes.flatMap((dispute) => dispute.fields.get('days')?.items ?? []);
  const parts = claim.fields.get('decomposition');
  if (!parts) throw new Difference(CLAIM, claim.line, 'has no decomposition');
  for (const name of ['rate', 'volume', 'own'])
    assertSame(parts, `${name}_exact`, sumOf(days, `${name}_usd_exact`), 'the days come to');
  checkRemedy(claim, disputed - netted);
}

/** The sentence that asks for the credit names its dollars. */
function checkRemedy(claim: JsonNode, recoverable: bigint): void {
  const remedy = claim.fields.get('requested_remedy');
  const head = claim.fields.get('claim');
  const cents = centsDown(recoverable).toString().padStart(3, '0');
  const whole = cents.slice(0, -2).replace(/\B(?=(\d{3})+$)/g, ',');
  const period = `${head?.fields.get('period_start')?.text} to ${head?.fields.get('period_end')?.text}`;
  if (remedy?.text !== `Issue a credit of $${whole}.${cents.slice(-2)} for ${period}.`)
    throw new Difference(CLAIM, remedy?.line, 'requested_remedy names another amount or period');
}

const sumOf = (nodes: readonly JsonNode[], name: string): bigint =>
  nodes.reduce((sum, node) => sum + amountOf(node, name), 0n);

const centsDown = (dollars: bigint): bigint => (dollars * 100n) / ONE;

function assertCents(node: JsonNode, name: string, dollars: bigint): void {
  const field = node.fields.get(name);
  const cents = centsDown(dollars);
  if (field?.text !== String(cents))
    throw new Difference(
      CLAIM,
      field?.line,
      `${name} is ${field?.text}, and ${decimalText(dollars)} dollars are ${cents} whole cents`,
    );
}
