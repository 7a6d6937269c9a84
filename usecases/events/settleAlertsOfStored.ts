import { parsePolicies, readMarkedRules } from '../../db/events/ingest.js';
import type { OrgDb } from '../../db/orgDb.js';
import { publishPolicyAlerts, type SettledCalls, settleAlerts } from '../../db/policies/policyAlerts.js';
import { Judges, judgeCostBy } from './judgeBatch.js';

/** Moves the alerts to the counting events; of the policies only those on cost can change, by the completed calls. */
export async function settleAlertsOfStored(orgDb: OrgDb, settled: SettledCalls): Promise<void> {
  const { policiesText, alertsWanted } = await readMarkedRules(orgDb);
  const ofCost = parsePolicies(policiesText).filter(
    ({ type }) => type === 'approval_required_threshold_cents',
  );
  const { added } = await settleAlerts(orgDb, settled, [], judgeCostBy(new Judges(ofCost)));
  if (alertsWanted)
    await publishPolicyAlerts(
      orgDb,
      added.map(({ id }) => id),
    );
}
