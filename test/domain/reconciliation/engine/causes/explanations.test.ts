import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { HYPOTHESES } from '../../../../../domain/reconciliation/engine/causes/library.js';

import { isViolation, TAXONOMY_KINDS } from '../../../../../domain/reconciliation/taxonomy.js';

const PAGE = readFileSync(
  path.resolve(import.meta.dirname, '..', '..', '..', '..', '..', 'docs', 'explanations.md'),
  'utf8',
);
/** Found over the account, from several series or from keys. */
const OF_ACCOUNTS = ['model_misattribution', 'unauthorized_key_usage'];
const WHOSE = { provider: 'provider', own: 'your own', none: 'nobody’s' };

const section = (title: string) =>
  PAGE.slice(PAGE.indexOf(`## ${title}`))
    .split('\n## ')[0]
    ?.split('\n### ')[0] ?? '';
const partOf = (title: string) => PAGE.slice(PAGE.indexOf(`### ${title}`)).split('\n### ')[0] ?? '';
const rowsOf = (text: string) =>
  [...text.matchAll(/^\| `(\w+)` \|(.*)\|$/gm)].map(([, key = '', rest = '']) => ({
    key,
    cells: rest.split(' | ').map((cell) => cell.trim()),
  }));
const found = rowsOf(section('Kinds that are found'));
const missing = rowsOf(section('Kinds that are not found yet'));

describe('docs/explanations.md', () => {
  it('has each key of the taxonomy once, in its order', () => {
    const keys = [...found, ...missing].map((row) => row.key);
    expect([...keys].sort()).toEqual([...TAXONOMY_KINDS].sort());
    for (const rows of [found, missing])
      expect(rows.map((row) => row.key)).toEqual(
        TAXONOMY_KINDS.filter((kind) => rows.some((row) => row.key === kind)),
      );
  });

  it('states for each key whether the library looks for it', () => {
    const looked = new Set<string>([...HYPOTHESES.map((one) => one.kind), ...OF_ACCOUNTS]);
    expect(found.map((row) => row.key).filter((key) => !looked.has(key))).toEqual([]);
    expect(missing.map((row) => row.key).filter((key) => looked.has(key))).toEqual([]);
  });

  it('names the party at fault of a kind as the library does', () => {
    for (const { kind, blame } of HYPOTHESES) {
      const row = found.find((one) => one.key === kind);
      expect(row?.cells[2]?.replace("'", '’'), kind).toBe(WHOSE[blame]);
      expect(row?.cells[3] === 'no', kind).toBe(!isViolation(kind));
    }
  });

  it('names each mistake of the client in the library', () => {
    const own = HYPOTHESES.filter((one) => one.blame === 'own');
    const named = [...PAGE.slice(PAGE.indexOf('### Your own')).matchAll(/`([a-z_]+)`/g)].map(
      ([, name]) => name ?? '',
    );
    for (const variant of [
      'input_includes_cached',
      'input_includes_reads',
      'cached_taken_off_twice',
      'cache_not_told',
      'class_missing',
      'lifetimes_missing',
      'reasoning_missing',
      'reasoning_twice',
      'batch_not_flagged',
      'tier_not_told',
      'tier_as_requested',
      'cheaper_share',
      'length_miscounted',
      'sent_twice',
      'cents_as_dollars',
      'dollars_as_cents',
    ]) {
      expect(named).toContain(variant);
      const advice = own.flatMap((one) => one.advise?.(variant, []) ?? []);
      expect(advice.length, variant).toBeGreaterThan(0);
      expect(own.some((one) => one.describe(variant) !== '')).toBe(true);
    }
  });
});

describe('the highest grades', () => {
  const told = [...partOf('Highest grades').matchAll(/^\| (`.*?) \| (.*?) \|/gm)].map(
    ([, keys = '', grade = '']) => ({
      keys: [...keys.matchAll(/`([a-z_]+)`/g)].map(([, key]) => key),
      grade,
    }),
  );
  const gradeOf = (kind: string) => told.find(({ keys }) => keys.includes(kind))?.grade ?? '';

  it('are listed for every kind that is found, and for what is never claimable', () => {
    expect(told.flatMap(({ keys }) => keys).sort()).toEqual(found.map(({ key }) => key).sort());
    for (const { kind, reviewOnly, blame } of HYPOTHESES)
      expect(gradeOf(kind).includes('never claimable'), kind).toBe(
        reviewOnly === true || blame !== 'provider',
      );
  });

  it('are those of the library', () => {
    for (const { kind, highest } of HYPOTHESES)
      if (highest) expect(gradeOf(kind), kind).toContain(highest);
      else expect(gradeOf(kind), kind).toContain('HIGH');
  });
});

describe('the library', () => {
  it('states for every hypothesis of the provider what to ask for', () => {
    for (const hypothesis of HYPOTHESES)
      expect(hypothesis.advise?.('', []) ?? hypothesis.kind, hypothesis.kind).toBeInstanceOf(Array);
  });
});
