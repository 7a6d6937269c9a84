import { describe, expect, it } from 'vitest';
import { runCommand } from '../usecases/installation/backup/support/installation.js';

const NOWHERE = { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none', TEMPORAL_ADDRESS: '127.0.0.1:1' };

describe('every command', () => {
  it.each(['reconcile', 'doctor'])(
    'says how it is used when it is asked, and does nothing: %s',
    async (name) => {
      const { exit, output } = await runCommand(name, ['--help'], NOWHERE);
      expect(output).toMatch(/^Usage: npm run (reconcile|doctor)/);
      expect(exit).toBe(0);
    },
    180_000,
  );
});

describe('a command that takes no words', () => {
  it.each(['start', 'demo', 'demoReset', 'doctor', 'migrate'])(
    'does nothing when it is given one: %s',
    async (name) => {
      const { exit, output } = await runCommand(name, ['--dry-run'], NOWHERE);
      expect(output).toMatch(
        /^Unknown option '--dry-run'.*\nUsage: npm (start|run (demo|demo:reset|doctor|db:migrate))/,
      );
      expect(exit).toBe(1);
    },
    180_000,
  );
});
