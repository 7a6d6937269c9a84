import type { OrgDb } from '../orgDb.js';
import { type MarkedSettings, readMarkedSettings } from '../queries/organizations.js';

/** Organizations that are remembered; the one that was read first is forgotten first. */
const ORGANIZATIONS_MAX = 10_000;

/**
 * Settings as they were when they were last read. They may have changed since, in any process: whoever acts on them
 * asks for the mark in the statement by which he acts, and begins anew with `forget` when it is another one. So a
 * change holds everywhere from its commit on, and nobody waits for word of it.
 */
export class AssumedSettings {
  readonly #byOrganization = new Map<string, MarkedSettings>();

  /** What to assume for the organization of the handle; read where nothing is remembered. */
  async of(orgDb: OrgDb): Promise<MarkedSettings> {
    const known = this.#byOrganization.get(orgDb.orgId);
    if (known) return known;
    const read = await readMarkedSettings(orgDb);
    const [oldest] = this.#byOrganization.keys();
    if (oldest !== undefined && this.#byOrganization.size >= ORGANIZATIONS_MAX)
      this.#byOrganization.delete(oldest);
    this.#byOrganization.set(orgDb.orgId, read);
    return read;
  }

  forget(orgId: string): void {
    this.#byOrganization.delete(orgId);
  }
}

/** Settings that were assumed hold no longer. */
export class SettingsChanged extends Error {}
