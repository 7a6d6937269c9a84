import { type MarkedRules, parsePolicies, readMarkedRules } from '../../db/events/ingest.js';
import type { OrgDb } from '../../db/orgDb.js';
import type { OrganizationSettings } from '../../domain/installation/settings.js';
import { Judges } from './judgeBatch.js';

/** Organizations in the cache; the oldest entry is evicted first. */
const ORGANIZATIONS_MAX = 10_000;
/** Most memory of compiled policies, bytes, of all organizations together; typically a tenth of it is used. */
const POLICY_BYTES_MAX = 268_435_456;

/** Settings and policies for the calls of an organization. */
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
 * A cache of settings and policies. Any process may have changed them since they were read, so a writer verifies their
 * version mark in the statement that stores, and after a mismatch calls `forget` and starts again. A change therefore
 * holds everywhere from its commit on, without notifications.
 */
export class AssumedRules {
  readonly #byOrganization = new Map<string, Remembered>();
  readonly #shared: SharedJudges;
  readonly #bytesMax: number;

  /** @param onCompiled is called with policies that this process compiles. */
  constructor(onCompiled: (judges: Judges) => void = () => undefined, bytesMax = POLICY_BYTES_MAX) {
    this.#shared = new SharedJudges(onCompiled);
    this.#bytesMax = bytesMax;
  }

  /** The cached rules of the handle's organization; reads them when they are not cached. */
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

  /** Number of cached organizations, and the memory of their policies. */
  get size(): { organizations: number; bytes: number } {
    return { organizations: this.#byOrganization.size, bytes: this.#shared.bytes };
  }

  #remember(orgId: string, { settings, policiesText, alertsWanted, mark }: MarkedRules): IngestRules {
    // Another request of this process may have read it meanwhile.
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

/** Compiled policies, shared by all organizations with equal policies. */
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

/** The cached rules of an organization are out of date. */
export class RulesChanged extends Error {}
