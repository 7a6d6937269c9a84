import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openTab, startBrowser, visit } from '../support/browser.js';
import { type ClaimedDemo, startClaimedDemo } from '../support/claimedDemo.js';

let demo: ClaimedDemo;
let browser: Browser;

beforeAll(async () => {
  [demo, browser] = await Promise.all([startClaimedDemo(), startBrowser()]);
});

afterAll(async () => {
  await browser.close();
  await demo.close();
});

it('previews a policy by keyboard and saves it', async () => {
  const { adminKey } = demo.organization;
  const { page, faults, close } = await openTab(browser, demo.api.baseUrl, adminKey);
  await visit(page, '/policies');
  await page.getByRole('button', { name: /^(Edit|Set) Expensive calls$/ }).press('Enter');
  await page.getByLabel('US dollars a call').fill('1.5');
  await page.getByRole('button', { name: 'Preview on the newest calls' }).press('Enter');
  const preview = await demo.api.post(
    '/api/v1/policies/approval_required_threshold_cents/preview',
    { config: { threshold_cents: 150 }, enabled: true },
    adminKey,
  );
  const shown = new Intl.NumberFormat('en-US').format(preview.body.flagged);
  await page.getByText(`${shown} of the newest`).waitFor();
  await page.getByLabel('US dollars a call').press('Enter');
  await page.getByText('The policy is saved.').waitFor();
  const { policies } = (await demo.api.get('/api/v1/policies', adminKey)).body;
  const saved = policies.find(
    (one: { policy_type: string }) => one.policy_type === 'approval_required_threshold_cents',
  );
  expect(saved.config).toEqual({ threshold_cents: 150 });
  expect(faults).toEqual([]);
  await close();
});

it('states at banned patterns who searches the prompts that are not sent', async () => {
  const { page, close } = await openTab(browser, demo.api.baseUrl, demo.organization.adminKey);
  await visit(page, '/policies');
  await page.getByText('The wrappers send none unless').waitFor();
  await page.getByText('they search the prompts where they are').waitFor();
  await page.getByRole('button', { name: /^(Edit|Set) Banned patterns$/ }).press('Enter');
  await page.getByLabel('Patterns, one a line').fill('(?=a)\nsecret');
  await page.getByRole('button', { name: 'Preview on the newest calls' }).press('Enter');
  await page.getByText('RE2 does not support look-ahead').waitFor();
  await close();
});

it('acknowledges an alert from its detail', async () => {
  const { adminKey } = demo.organization;
  const { alerts } = (await demo.api.get('/api/v1/alerts?status=open&limit=1', adminKey)).body;
  expect(alerts).toHaveLength(1);
  const { page, faults, close } = await openTab(browser, demo.api.baseUrl, adminKey);
  await visit(page, `/alerts?status=open&id=${alerts[0].id}`);
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Acknowledge' }).press('Enter');
  await page.getByText('The alert is acknowledged.').waitFor();
  const { body } = await demo.api.get(`/api/v1/alerts/${alerts[0].id}`, adminKey);
  expect(body.status).toBe('acknowledged');
  expect(faults).toEqual([]);
  await close();
});

it('shows an auditor no button that changes a policy or an alert', async () => {
  const auditor = await demo.api.addKey(demo.organization.orgId, 'auditor');
  const { page, close } = await openTab(browser, demo.api.baseUrl, auditor);
  await visit(page, '/policies');
  expect(await page.getByRole('button', { name: /^(Edit|Set) / }).count()).toBe(0);
  await visit(page, '/alerts');
  expect(await page.getByRole('button', { name: /^Acknowledge/ }).count()).toBe(0);
  await close();
});
