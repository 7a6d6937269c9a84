/** What keys used that nobody knows, or that were out of use: it is among what the bill has and no event tells of. */
import type { KeyUse, SuspectKey } from '../../billing/providerKeys.js';
import { TOKEN_CLASSES } from '../../events/event.js';
import { absPico, type Pico } from '../../money.js';
import type { Finding, FindingDay, Gate } from '../inference/finding.js';
import { gradeOfAccountFinding, keepDays, sumPico } from './accountFindings.js';
import type { AccountInput } from './explainAccount.js';

/** Kinds that may be such use under another name. */
const MAY_BE_USE: ReadonlySet<string> = new Set([
  'unexplained',
  'unobserved_usage',
  'token_count_inflation',
  'client_metering_error',
]);

/** Excess and use that differ by less than this share are the same. */
const SAME_PERCENT = 5n;

/**
 * The findings, with those taken over that suspect keys account for: day by day where the keys' use is known, else as a
 * whole where the sums agree.
 */
export function findSuspectUse(input: AccountInput, findings: readonly Finding[]): Finding[] {
  const keys = input.suspectKeys.filter(
    (key) => key.provider === input.provider && key.providerAccountId === input.accountId,
  );
  if (keys.length === 0) return [...findings];
  const candidates = findings.filter(
    (finding) => finding.direction === 'overcharge' && MAY_BE_USE.has(finding.kind),
  );
  const others = findings.filter((finding) => !candidates.includes(finding));
  const taken = keys.some((key) => key.uses)
    ? candidates.flatMap((finding) => takeDays(finding, keys, input))
    : takeSums(candidates, keys, input);
  return [...others, ...taken];
}

/** Splits a finding into the days that the keys' use accounts for and the rest. */
function takeDays(finding: Finding, keys: readonly SuspectKey[], input: AccountInput): Finding[] {
  const isUsed = new Set<string>();
  const users = new Set<SuspectKey>();
  const residuals = new Map(
    (input.series.find((one) => one.model === finding.model)?.residuals ?? []).map((one) => [one.day, one]),
  );
  for (const { day, impactPico } of finding.days) {
    const own = keys.flatMap((key) =>
      (key.uses ?? [])
        .filter((use) => use.day === day && isModel(use, finding.model))
        .map((use) => ({ key, use })),
    );
    if (own.length === 0) continue;
    const excess = residuals.get(day)?.excess;
    if (
      !isAccountedFor(
        own.map(({ use }) => use),
        impactPico,
        excess,
      )
    )
      continue;
    isUsed.add(day);
    for (const { key } of own) users.add(key);
  }
  const mine = keepDays(finding, (day) => isUsed.has(day));
  const rest = keepDays(finding, (day) => !isUsed.has(day));
  return [...(mine ? [asSuspect(mine, [...users], input, true)] : []), ...(rest ? [rest] : [])];
}

/** Bills may name a model by its date; a series has the name of its price entry. */
function isModel(use: KeyUse, model: string): boolean {
  return use.model === model || use.model.startsWith(`${model}-`);
}

/** The keys' tokens are the excess, class by class; where only their cost is told, their cost is the impact. */
function isAccountedFor(
  uses: readonly KeyUse[],
  impactPico: Pico,
  excess: Readonly<Partial<Record<string, bigint>>> | undefined,
): boolean {
  const counted = uses.some((use) => Object.keys(use.quantities).length > 0);
  if (counted && excess) {
    let apart = 0n;
    let whole = 0n;
    for (const name of TOKEN_CLASSES) {
      const used = uses.reduce((total, use) => total + (use.quantities[name] ?? 0n), 0n);
      const more = excess[name] ?? 0n;
      apart += absPico(more - used);
      whole += absPico(more);
    }
    return whole > 0n && apart * 100n <= whole * SAME_PERCENT;
  }
  const billed = uses.reduce((total, use) => total + (use.billedPico ?? 0n), 0n);
  return billed > 0n && isSame(billed, impactPico);
}

function isSame(one: Pico, other: Pico): boolean {
  return absPico(one - other) * 100n <= absPico(other) * SAME_PERCENT;
}

/** Where only sums are known: everything that lies within the keys' days is theirs if it sums to what they cost. */
function takeSums(
  candidates: readonly Finding[],
  keys: readonly SuspectKey[],
  input: AccountInput,
): Finding[] {
  const billed = sumPico(keys.map((key) => key.billedPico ?? 0n));
  const isIn = (day: string) => keys.some((key) => day >= key.firstDay && day <= key.lastDay);
  const inside = sumPico(
    candidates.flatMap((finding) => finding.days.filter((one) => isIn(one.day)).map((one) => one.impactPico)),
  );
  if (billed <= 0n || !isSame(billed, inside)) return [...candidates];
  return candidates.flatMap((finding) => {
    const mine = keepDays(finding, isIn);
    const rest = keepDays(finding, (day) => !isIn(day));
    return [...(mine ? [asSuspect(mine, keys, input, false)] : []), ...(rest ? [rest] : [])];
  });
}

const REASON: Readonly<Record<SuspectKey['reason'], string>> = {
  unknown: 'which nobody has registered and no event names',
  billed_after_revocation: 'which was revoked before',
};

function asSuspect(
  finding: Finding,
  keys: readonly SuspectKey[],
  input: AccountInput,
  byDay: boolean,
): Finding {
  const probability = byDay ? 0.97 : 0.85;
  const settled: readonly Gate[] = [
    'coverage_or_sealed_scope',
    'residual_within_tolerance',
    'odds_against_next',
    'evidence_needed',
  ];
  const isRevoked = keys.every((key) => key.reason === 'billed_after_revocation');
  // Of a key that is only not registered nobody knows whether it is not the organization's own.
  const missing: Gate[] = [
    ...finding.missing.filter((gate) => !settled.includes(gate)),
    ...(isRevoked ? [] : (['evidence_needed'] as const)),
  ];
  const days: FindingDay[] = finding.days.map((one) => ({ ...one, probability }));
  const named = [...keys].sort((a, b) => (a.providerKeyId < b.providerKeyId ? -1 : 1));
  return {
    ...finding,
    kind: 'unauthorized_key_usage',
    variant: isRevoked ? 'after_revocation' : 'unknown_key',
    blame: 'provider',
    claimable: true,
    days,
    recoverablePico: finding.impactPico,
    grade: gradeOfAccountFinding(probability, missing, finding.visibility, finding.provisional),
    probability,
    missing,
    next: { kind: finding.kind, odds: probability / (1 - probability) },
    waterfall: [
      ...finding.waterfall,
      {
        signal: 'provider keys',
        level: byDay ? 'use by day' : 'sum',
        bits: Math.log2(probability / (1 - probability)),
      },
    ],
    reason: `What no event tells of is what key ${named
      .map((key) => `${key.providerKeyId}, ${REASON[key.reason]},`)
      .join(' and key ')} used.`,
    advice: isRevoked
      ? ['Tell the provider when the key was revoked, and ask which addresses used it afterwards.']
      : [
          'Register the key if it is yours; if it is not, revoke it at the provider now and ask which addresses used it.',
        ],
    critical: finding.critical || !isRevoked,
    weightSet: input.weights.version,
  };
}
