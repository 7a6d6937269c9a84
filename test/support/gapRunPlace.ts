import { expect } from 'vitest';
import { startTestApi, type TestApi, type TestOrganization } from './api.js';
import { type GeneratedBills, generateBills } from './billGenerator.js';
import { importBill } from './bills.js';
import { startTestEngine, type TestEngine } from './engine.js';

const DAYS = 8;
/** Provider-days of a run over the bills. */
export const UNITS = 2 * DAYS;
export const EXPLORER = '/api/v1/reconciliation/gap-explorer';

/** An API and an engine with bills to compare; no worker is started. */
export class GapRunPlace {
  readonly bills: GeneratedBills = generateBills({
    seed: 7,
    lastDay: new Date(Date.now() - 4 * 86_400_000).toISOString().slice(0, 10),
    days: DAYS,
    callsPerHour: 1,
  });

  private constructor(
    readonly api: TestApi,
    readonly engine: TestEngine,
  ) {}

  static async open(): Promise<GapRunPlace> {
    const api = await startTestApi();
    return new GapRunPlace(api, await startTestEngine(api.database.database));
  }

  async close(): Promise<void> {
    await this.engine.close();
    await this.api.close();
  }

  /** An organization with 8 days of two providers' bills, read. */
  async aBilledOrganization(): Promise<TestOrganization> {
    const organization = await this.api.addOrganization();
    const worker = await this.engine.startWorker();
    const { openaiCosts, anthropicCosts } = this.bills.files;
    await importBill(this.api, openaiCosts, { provider: 'openai' }, organization.adminKey);
    await importBill(this.api, anthropicCosts, { provider: 'anthropic' }, organization.adminKey);
    await worker.stop();
    return organization;
  }

  /** The run as it was accepted. */
  async start(organization: TestOrganization, query = '?period=30d') {
    const { status, body } = await this.api.post(`${EXPLORER}/run${query}`, {}, organization.adminKey);
    expect(status).toBe(202);
    return body;
  }

  /** Units of the organization that a run has matched. */
  async doneUnits(organization: TestOrganization): Promise<number> {
    const { rows } = await this.api.database.superuser.query(
      `select count(*)::int as count from gap_run_units where org_id = $1 and status = 'done'`,
      [organization.orgId],
    );
    return rows[0].count;
  }
}
