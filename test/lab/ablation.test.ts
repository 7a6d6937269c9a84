import { readFileSync } from 'node:fs';
import type { LoadFnOutput, LoadHookContext } from 'node:module';
import { describe, expect, it } from 'vitest';
import { GATES, HYPOTHESES } from '../../domain/reconciliation/engine/index.js';
import {
  effectTable,
  emptyMeasured,
  type Measured,
  nameOf,
} from '../../lab/bench/reconciliation/ablation/ablate.js';
import { load, withEdits } from '../../lab/bench/reconciliation/ablation/hooks.js';
import { numbers, type Rule, rules, switches } from '../../lab/bench/reconciliation/ablation/rules.js';
import { addTally, emptyTally } from '../../lab/bench/reconciliation/tally.js';

const CONTEXT = {} as LoadHookContext;
const loaded = (source: string) => async (): Promise<LoadFnOutput> => ({ format: 'module', source });

const edit = {
  file: 'engine/calibration.js',
  find: '^export const A = (.*);$',
  replace: 'export const A = 2 * ($1);',
};
const address = (file: string) =>
  withEdits(new URL(`file:///clone/dist/domain/reconciliation/engine/${file}`), [edit]).href;

describe('the hooks of an ablation', () => {
  it('change the text of the meant file alone', async () => {
    const source = 'export const A = 3;\nexport const B = 4;\n';
    const changed = await load(address('calibration.js'), CONTEXT, loaded(source));
    expect(changed.source).toBe('export const A = 2 * (3);\nexport const B = 4;\n');
    expect((await load(address('index.js'), CONTEXT, loaded(source))).source).toBe(source);
    const plain = 'file:///clone/dist/domain/reconciliation/engine/calibration.js';
    expect((await load(plain, CONTEXT, loaded(source))).source).toBe(source);
  });

  it('fail where the file lacks the text to change, so that no rule is measured as without effect by mistake', async () => {
    await expect(load(address('calibration.js'), CONTEXT, loaded('export const B = 4;'))).rejects.toThrow(
      'lacks the text to change',
    );
  });
});

describe('the rules of an ablation', () => {
  const all = rules();
  const named = (kind: string) => all.filter((one) => one.kind === kind).map((one) => one.name);
  const sourceOf = (file: string) => readFileSync(file.replace(/js$/, 'ts'), 'utf8');

  it('are every explanation of the library, in its order, and every gate once', () => {
    expect(named('explanation')).toHaveLength(HYPOTHESES.length);
    expect(new Set(all.map(({ kind, name }) => `${kind} ${name}`)).size).toBe(all.length);
    expect(named('gate')).toEqual([...GATES]);
  });

  it('have switches in texts that the engine has once, so that each is really left out', () => {
    for (const { file, find } of switches()) {
      const meant = sourceOf(file).match(new RegExp(find, 'gm')) ?? [];
      expect(meant, `${file}: ${find}`).toHaveLength(1);
    }
  });

  it('are functions of the engine that are noted, all explained again, or of an account', () => {
    for (const kind of ['doubt', 'nuisance', 'account'])
      for (const name of named(kind))
        expect(switches().filter(({ find }) => find.includes(`function ${name}`))).toHaveLength(1);
    expect(all.filter(({ again }) => again === 'none').map(({ kind }) => kind)).toEqual(
      named('account').map(() => 'account'),
    );
  });

  it('change each number of the calibration down and up, other than those with another source', () => {
    const source = sourceOf('domain/reconciliation/engine/calibration.js');
    const names = [...source.matchAll(/^export const ([A-Z]\w*) = /gm)].map(([, name]) => name);
    const changed = numbers();
    for (const { name } of changed) expect(names).toContain(name);
    expect(changed).toHaveLength(2 * (names.length - 3));
    expect(changed.map(nameOf)).toContain('number UNDECIDED × 0.75');
    expect(changed.map(nameOf)).toContain('number UNDECIDED × 1.25');
  });
});

describe('the table of effects', () => {
  it('has by how much each metric changes without a rule, and none for less than five thousandths', () => {
    const measured = (found: number): Measured => {
      const one = emptyMeasured();
      addTally(one.mixed, { ...emptyTally(), identifiable: 1_000, found, eligible: 1_000, foundHigh: 500 });
      return one;
    };
    const [gate, ...more]: Rule[] = rules().filter(({ kind }) => kind === 'gate');
    const table = effectTable(measured(800), [gate as Rule, more[0] as Rule], [measured(700), measured(799)]);
    const [, , , much, little] = table.split('\n');
    expect(much).toBe(
      '| gate closed_period | 0.000 | -0.100 | 0.000 | 0.000 | 0.000 | 0.000 | 0.000 | 0.100 |',
    );
    expect(little).toContain('| -0.001 |');
    expect(little).toMatch(/\| none \|$/);
  });
});
