import { describe, expect, it } from 'vitest';
import type { Finding } from '../domain/reconciliation/engine/index.js';

import { type Reconciled, reconcileDays } from '../domain/reconciliation/reconcileDays.js';
import { isViolation } from '../domain/reconciliation/taxonomy.js';
import { DEFAULT_WEIGHTS } from '../domain/reconciliation/weights/weightSet.js';
import { CLASSES, excessByDay, type PublishedCase } from './support/published/case.js';
import { PUBLISHED_CASES } from './support/published/cases.js';
import { inputOf } from './support/published/judge.js';
import { mirrored, renamed, scaled, shifted } from './support/published/transform.js';

async function reconcile(one: PublishedCase): Promise<Reconciled> {
  const { days, prices } = await inputOf(one);
  return reconcileDays(one.provider, days, prices, DEFAULT_WEIGHTS, []);
}

const sum = (values: readonly bigint[]): bigint => values.reduce((total, value) => total + value, 0n);

/** Impact of findings by day; days without any are left out. */
function impactByDay(findings: readonly Finding[]): Map<string, bigint> {
  const days = new Map<string, bigint>();
  for (const { day, impactPico } of findings.flatMap((finding) => finding.days))
    days.set(day, (days.get(day) ?? 0n) + impactPico);
  return new Map([...days].filter(([, pico]) => pico !== 0n).sort());
}

/** Checks that the mistake is found with its kind, days and dollars, and that nothing else is found. */
function expectFound(one: PublishedCase, { findings }: Reconciled): void {
  const { fault, model } = one;
  const words = findings.map((finding) => ({
    kind: finding.kind,
    way: finding.variant.split(':')[0],
    direction: finding.direction,
    blame: finding.blame,
    model: finding.model,
  }));
  expect(findings).not.toEqual([]);
  const { kind, way, direction, blame } = fault;
  for (const word of words) expect(word).toEqual({ kind, way, direction, blame, model });
  const claimable = blame === 'provider' && direction === 'overcharge';
  if (direction === 'overcharge')
    expect(findings.map((finding) => finding.claimable)).toEqual(findings.map(() => claimable));
  expect(impactByDay(findings)).toEqual(excessByDay(one));
  const excess = sum([...excessByDay(one).values()]);
  expect(sum(findings.map(({ recoverablePico }) => recoverablePico))).toBe(claimable ? excess : 0n);
  if (blame === 'provider')
    for (const finding of findings) expect(['HIGH', 'MEDIUM']).toContain(finding.grade);
}

const HALF_A_CENT = 5_000_000_000n;

/** The same check of kind and days, with dollars to half a cent a row. */
function expectFoundToTheCent(one: PublishedCase, { findings }: Reconciled): void {
  expect(new Set(findings.map(({ kind }) => kind))).toEqual(new Set([one.fault.kind]));
  const found = impactByDay(findings);
  const excess = excessByDay(one);
  expect([...found.keys()]).toEqual([...excess.keys()]);
  for (const [day, pico] of found) {
    const apart = pico - (excess.get(day) ?? 0n);
    expect((apart < 0n ? -apart : apart) <= HALF_A_CENT * BigInt(CLASSES.length)).toBe(true);
  }
}

/** No side is blamed: the finding is the user's own mistake. */
function expectOwn(one: PublishedCase, { findings, explanations }: Reconciled): void {
  const { kind, way } = one.fault;
  expect(findings.map((finding) => [finding.kind, finding.variant.split(':')[0]])).toEqual(
    findings.map(() => [kind, way]),
  );
  expect(findings.length).toBeGreaterThan(0);
  expect(findings.filter((finding) => isViolation(finding.kind) || finding.claimable)).toEqual([]);
  expect(sum(findings.map(({ recoverablePico }) => recoverablePico))).toBe(0n);
  expect(sum(explanations.flatMap(({ days }) => days.map((day) => day.unexplainedPico)))).toBe(0n);
  const advised = new Set(findings.flatMap(({ days }) => days.map(({ day }) => day)));
  expect([...advised].sort()).toEqual(one.days.map(({ day }) => day));
}

const isClients = (one: PublishedCase) => one.told !== undefined;
const expectRight = (one: PublishedCase, found: Reconciled) =>
  isClients(one) ? expectOwn(one, found) : expectFound(one, found);

const named = (cases: readonly PublishedCase[]) => cases.map((one) => [one.name, one] as const);

describe.each(named(PUBLISHED_CASES))('%s', (_, one) => {
  it('is found by its name, on its days, with its dollars, and nothing beside it', async () => {
    expectRight(one, await reconcile(one));
  });

  it.each([
    ['a hundredth', 1, 100],
    ['a tenth', 1, 10],
    ['ten times', 10, 1],
    ['a thousand times', 1_000, 1],
  ] as const)('is found in %s of the calls', async (_, numerator, denominator) => {
    const other = scaled(one, numerator, denominator);
    expectRight(other, await reconcile(other));
  });

  it('is found under another name of the model', async () => {
    const other = renamed(one, one.otherModel ?? 'atlas-9-large');
    expectRight(other, await reconcile(other));
  });

  it.each([-17, 3, 40])('is found %i days later', async (by) => {
    const other = shifted(one, by);
    expectRight(other, await reconcile(other));
  });

  it('leaves nothing to find where the bill is right', async () => {
    const right: PublishedCase = { ...one, fault: { ...one.fault, days: [] } };
    if (isClients(right)) delete right.told;
    const { findings, explanations } = await reconcile(right);
    expect(findings).toEqual([]);
    expect(sum(explanations.flatMap(({ days }) => days.map((day) => day.unexplainedPico)))).toBe(0n);
  });
});

it.each(named(PUBLISHED_CASES.flatMap((one) => mirrored(one) ?? [])))(
  '%s: is found with the opposite sign too, and is then not claimable',
  async (_, one) => {
    expectRight(one, await reconcile(one));
  },
);

it.each(named(PUBLISHED_CASES.filter(({ format }) => format === 'plain_csv')))(
  '%s: is found where amounts are rounded to the cent',
  async (_, one) => {
    const other = { ...one, toTheCent: true };
    expectFoundToTheCent(other, await reconcile(other));
  },
);
