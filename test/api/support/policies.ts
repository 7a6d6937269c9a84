import { expect } from 'vitest';
import type { PolicyConfigs, PolicyType } from '../../../domain/policies/policy.js';
import type { TestApi, TestOrganization } from '../../support/api.js';
import { send } from './requests.js';

export type Server = Pick<TestApi, 'baseUrl' | 'adminKey'>;

/** Puts a policy at a server; fails where it is refused. Returns the answer's body. */
export async function putPolicy<T extends PolicyType>(
  api: Server,
  { adminKey }: Pick<TestOrganization, 'adminKey'>,
  type: T,
  config: PolicyConfigs[T],
  enabled = true,
): Promise<Record<string, unknown>> {
  const answer = await send(api, {
    method: 'PUT',
    path: `/api/v1/policies/${type}`,
    key: adminKey,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ config, enabled }),
  });
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  return answer.body;
}

/** An alert as the API shows it. */
// biome-ignore lint/suspicious/noExplicitAny: what a test asserts is the shape
export type ShownAlert = Record<string, any>;

/** The alerts of calls, newest first; with a key of the organization. */
export async function listAlerts(api: Pick<TestApi, 'get'>, key: string): Promise<ShownAlert[]> {
  const { status, body } = await api.get('/api/v1/alerts?kind=policy&limit=1000', key);
  expect(status, JSON.stringify(body)).toBe(200);
  return body.alerts;
}

/** Alerts as `policy type of event id`, in order. */
export async function alertsByEvent(api: Pick<TestApi, 'get'>, key: string): Promise<string[]> {
  return (await listAlerts(api, key)).map((alert) => `${alert.policy_type} of ${alert.event_id}`).sort();
}
