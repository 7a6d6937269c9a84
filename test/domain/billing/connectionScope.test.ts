import { describe, expect, it } from 'vitest';
import { isInScope, scopedProjects } from '../../../domain/billing/connections.js';

describe('the scope of a connection', () => {
  it('is the whole account where it names nothing', () => {
    for (const settings of [{}, { scope: {} }, { scope: { projects: [], workspaces: [] } }]) {
      expect(isInScope({ project: 'proj_a' }, settings)).toBe(true);
      expect(isInScope({ project: null }, settings)).toBe(true);
      expect(scopedProjects(settings)).toEqual([]);
    }
  });

  it('takes the projects or workspaces that it names, and nothing that belongs to the account as a whole', () => {
    const settings = { scope: { projects: ['proj_a', 'proj_b'] } };
    expect(isInScope({ project: 'proj_a' }, settings)).toBe(true);
    expect(isInScope({ project: 'proj_c' }, settings)).toBe(false);
    expect(isInScope({ project: null }, settings)).toBe(false);
  });

  it('takes the default workspace, which has no id, by the name default', () => {
    const settings = { scope: { workspaces: ['wrkspc_a', 'default'] } };
    expect(isInScope({ project: null }, settings)).toBe(true);
    expect(isInScope({ project: 'wrkspc_a' }, settings)).toBe(true);
    expect(isInScope({ project: 'wrkspc_b' }, settings)).toBe(false);
    expect(isInScope({ project: null }, { scope: { projects: ['default'] } })).toBe(false);
  });
});
