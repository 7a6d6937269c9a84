import { DomainError } from '../../domain/errors.js';
import type { ConnectorCheck } from './connector.js';

/** A check by its name, what it asks, and what is said when the answer is as it should be. */
export interface PlannedCheck {
  name: string;
  run(): Promise<string>;
}

/**
 * Runs the checks one after the other. A refusal and an answer that cannot be read fail the check with their sentence;
 * what is passing (an outage, a limit) is thrown, since it says nothing about the connection.
 */
export async function runChecks(checks: readonly PlannedCheck[]): Promise<ConnectorCheck[]> {
  const done: ConnectorCheck[] = [];
  for (const { name, run } of checks) {
    try {
      done.push({ name, ok: true, detail: await run() });
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      if (error.code !== 'credentials_refused' && error.code !== 'provider_answer_unreadable') throw error;
      done.push({ name, ok: false, detail: error.message });
    }
  }
  return done;
}
