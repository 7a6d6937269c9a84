import { readFileSync } from 'node:fs';
import type { LoadFnOutput, LoadHookContext } from 'node:module';
import { describe, expect, it } from 'vitest';
import { GATES, HYPOTHESES } from '../../domain/reconciliation/engine/index.js';
import { load, withEdit } from '../../lab/bench/reconciliation/ablation/hooks.js';
import { numbers, rules } from '../../lab/bench/reconciliation/ablation/rules.js';

const CONTEXT = {} as LoadHookContext;
const loaded = (source: string) => async (): Promise<LoadFnOutput> => ({ format: 'module', source });

const edit = {
  file: 'engine/calibration.js',
  find: '^export const A = (.*);$',
  replace: 'export const A = 2 * ($1);',
};
const address = (file: string) =>
  withEdit(new URL(`file:///clone/dist/domain/reconciliation/engine/${file}`), edit).href;

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
  const sourceOf = (file: string) => readFileSync(file.replace(/js$/, 'ts'), 'utf8');

  it('are every explanation and every gate once, and functions that the engine has', () => {
    const all = rules();
    const named = (kind: string) => all.filter((one) => one.kind === kind).map((one) => one.name);
    expect(named('explanation')).toHaveLength(HYPOTHESES.length);
    expect(named('gate')).toEqual([...GATES]);
    for (const { kind, name, edit: change } of all)
      if (kind !== 'gate' && kind !== 'explanation')
        expect(sourceOf(change.file), change.file).toContain(`function ${name}(`);
  });

  it('change each number of the calibration down and up', () => {
    for (const { edit: change } of numbers())
      expect(sourceOf(change.file)).toMatch(new RegExp(change.find.replace('(.*);$', ''), 'm'));
    const names = numbers().map((one) => one.name);
    expect(names).toContain('UNDECIDED × 0.75');
    expect(names).toContain('UNDECIDED × 1.25');
  });
});
