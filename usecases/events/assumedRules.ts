import { type MarkedRules, parsePolicies, readMarkedRules } from '../../db/events/ingest.js';
import type { OrgDb } from '../../db/orgDb.js';
import type { OrganizationSettings } from '../../domain/installation/settings.js';
import { Judges } from './judgeBatch.js';

/** Organizations that are remembered; the one that was read first is forgotten first. */
const ORGANIZATIONS_MAX = 10_000;
/** What compiled policies may come to in memory, of all organizations together; mostly it is a tenth of that. */
const POLICY_BYTES_MAX = 268_435_456;

/** What holds for the calls of an organization. */
export interface IngestRules {
  settings: OrganizationSettings;
  judges: Judges;
  alertsWanted: boolean;
  mark: string | null;
}

interface Remembered {
  rules: IngestRules;
  policiesText: string;
}

/**
 * Settings and policies as they were when they were last read. They may have changed since, in any process: anyone who
 * acts on them asks for the mark in the statement by which he acts, and begins again with `forget` when it is another
 * one. So a change holds everywhere from its commit on, and nobody waits for word of it.
 */
export class AssumedRules {
  readonly #byOrganization = new Map<string, Remembered>();
  readonly #shared: SharedJudges;
  readonly #bytesMax: number;

  /** @param onCompiled is called with policies that this process adopts. */
  constructor(onCompiled: (judges: Judges) => void = () => undefined, bytesMax = POLICY_BYTES_MAX) {
    this.#shared = new SharedJudges(onCompiled);
    this.#bytesMax = bytesMax;
  }

  /** What to assume for the organization of the handle; read where nothing is remembered. */
  async of(orgDb: OrgDb): Promise<IngestRules> {
    const known = this.#byOrganization.get(orgDb.orgId);
    if (known) return known.rules;
    return this.#remember(orgDb.orgId, await readMarkedRules(orgDb));
  }

  forget(orgId: string): void {
    const known = this.#byOrganization.get(orgId);
    if (known === undefined) return;
    this.#byOrganization.delete(orgId);
    this.#shared.release(known.policiesText);
  }

  /** Organizations that are remembered, and the memory of their policies. */
  get size(): { organizations: number; bytes: number } {
    return { organizations: this.#byOrganization.size, bytes: this.#shared.bytes };
  }

  #remember(orgId: string, { settings, policiesText, alertsWanted, mark }: MarkedRules): IngestRules {
    // Somebody else of this process may have read it meanwhile.
    this.forget(orgId);
    const rules = { settings, judges: this.#shared.take(policiesText), alertsWanted, mark };
    for (const oldest of this.#byOrganization.keys()) {
      if (this.#byOrganization.size < ORGANIZATIONS_MAX && this.#shared.bytes <= this.#bytesMax) break;
      this.forget(oldest);
    }
    this.#byOrganization.set(orgId, { rules, policiesText });
    return rules;
  }
}

/** Policies that were made ready, once for all organizations that have the same ones. */
class SharedJudges {
  bytes = 0;
  readonly #byText = new Map<string, { judges: Judges; organizations: number }>();
  readonly #onCompiled: (judges: Judges) => void;

  constructor(onCompiled: (judges: Judges) => void) {
    this.#onCompiled = onCompiled;
  }

  take(text: string): Judges {
    const known = this.#byText.get(text);
    if (known) {
      known.organizations += 1;
      return known.judges;
    }
    const policies = parsePolicies(text);
    if (policies.length === 0) return Judges.NONE;
    const judges = new Judges(policies);
    this.#onCompiled(judges);
    this.#byText.set(text, { judges, organizations: 1 });
    this.bytes += judges.bytesMax;
    return judges;
  }

  release(text: string): void {
    const known = this.#byText.get(text);
    if (known === undefined) return;
    known.organizations -= 1;
    if (known.organizations > 0) return;
    this.#byText.delete(text);
    this.bytes -= known.judges.bytesMax;
  }
}

/** What was assumed of an organization holds no longer. */
export class RulesChanged extends Error {}
