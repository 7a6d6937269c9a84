import { describe, expect, it } from 'vitest';
import { StatementNames } from '../../db/statementNames.js';

describe('names of statements', () => {
  it('are the same for a text, and different for two', () => {
    const names = new StatementNames('change', 2);
    const [one, two] = [names.nameOf('update a'), names.nameOf('update b')];
    expect(one).not.toBe(two);
    expect([names.nameOf('update a'), names.nameOf('update b')]).toEqual([one, two]);
  });

  it('are given to no further texts than a connection shall keep', () => {
    const names = new StatementNames('change', 1);
    expect(names.nameOf('update a')).toBeDefined();
    expect(names.nameOf('update b')).toBeUndefined();
  });
});
