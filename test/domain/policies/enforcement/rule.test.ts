import { describe, expect, it } from 'vitest';
import { findRuleFault, isInScope, type RuleScope } from '../../../../domain/policies/enforcement/rule.js';

const ANY: RuleScope = { teamId: null, feature: null, model: null };
const CALL = { teamId: 'growth', feature: 'drafts', model: 'gpt-4o' };

describe('the scope of a rule', () => {
  it.each<[string, Partial<RuleScope>, boolean]>([
    ['that names nothing is every call', {}, true],
    ['is by the team', { teamId: 'growth' }, true],
    ['is by every label that it names', { teamId: 'growth', feature: 'drafts', model: 'gpt-4o' }, true],
    ['is not by some of them', { teamId: 'growth', feature: 'search' }, false],
    ['is exact', { teamId: 'Growth' }, false],
    ['has no beginnings of names', { model: 'gpt-4' }, false],
  ])('%s', (_what, scope, isFor) => {
    expect(isInScope({ ...ANY, ...scope }, CALL)).toBe(isFor);
  });

  it('is no call that lacks a label that it names', () => {
    expect(isInScope({ ...ANY, teamId: 'growth' }, { ...CALL, teamId: null })).toBe(false);
  });
});

describe('a rule as a whole', () => {
  const downgrade = (model: string | null, toModel: string) =>
    findRuleFault({ type: 'model_downgrade', config: { toModel }, scope: { ...ANY, model } })?.field;

  it('sends calls of one model to another one', () => {
    expect(downgrade('gpt-4o', 'gpt-4o-mini')).toBeUndefined();
    expect(downgrade(null, 'gpt-4o-mini')).toBe('scope.model');
    expect(downgrade('gpt-4o', 'gpt-4o')).toBe('config.to_model');
  });

  it('of another type may be for calls of any model', () => {
    expect(findRuleFault({ type: 'token_ceiling', config: { maxTokens: 1 }, scope: ANY })).toBeUndefined();
  });
});
