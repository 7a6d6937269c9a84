import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.js';
import { openTab, startBrowser, visit } from '../support/browser.js';

let api: TestApi;
let browser: Browser;

beforeAll(async () => {
  [api, browser] = await Promise.all([startTestApi(), startBrowser()]);
});

afterAll(async () => {
  await browser.close();
  await api.close();
});

it('makes a key by keyboard, shows its secret once, rotates and revokes it', async () => {
  const { page, faults, close } = await openTab(browser, api.baseUrl, api.adminKey);
  await visit(page, '/settings/keys');
  await page.getByRole('button', { name: 'Create a key' }).press('Enter');
  await page.getByRole('textbox', { name: 'Name' }).fill('crawler');
  await page.getByRole('textbox', { name: 'Name' }).press('Enter');
  const secret = await page.getByRole('dialog').locator('code').innerText();
  expect(secret).toMatch(/^tu_live_/);
  // Escape must not lose the only sight of the secret.
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'I have copied it' }).press('Enter');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  expect((await api.get('/api/v1/session', secret)).body.role).toBe('ingest');

  await page.getByRole('button', { name: 'Rotate crawler' }).press('Enter');
  await page.getByRole('button', { name: 'Rotate', exact: true }).press('Enter');
  const rotated = await page.getByRole('dialog').locator('code').innerText();
  expect(rotated).not.toBe(secret);
  await page.getByRole('button', { name: 'I have copied it' }).press('Enter');
  await page.getByText('old secret until').waitFor();

  await page.getByRole('button', { name: 'Revoke crawler' }).press('Enter');
  await page.getByRole('button', { name: 'Revoke the key' }).press('Enter');
  await page.getByText('crawler is revoked.').waitFor();
  expect((await api.get('/api/v1/session', rotated)).status).toBe(401);
  expect(faults).toEqual([]);
  await close();
});

it('sends a form again after the API refused a field', async () => {
  const { page, close } = await openTab(browser, api.baseUrl, api.adminKey);
  await visit(page, '/settings');
  await page.getByLabel('Time zone').fill('Middle/Nowhere');
  await page.getByRole('button', { name: 'Save' }).press('Enter');
  await page.getByText('must be a name of the IANA time zone database').first().waitFor();
  expect(await page.getByLabel('Time zone').inputValue()).toBe('Middle/Nowhere');
  await page.getByLabel('Time zone').fill('Europe/Berlin');
  await page.getByRole('button', { name: 'Save' }).press('Enter');
  await page.getByText('The settings are saved.').waitFor();
  expect((await api.get('/api/v1/organization/settings')).body.time_zone).toBe('Europe/Berlin');
  await close();
});

it('signs out everywhere', async () => {
  const other = await openTab(browser, api.baseUrl, api.adminKey);
  const { page, close } = await openTab(browser, api.baseUrl, api.adminKey);
  await visit(page, '/settings/sessions');
  await page.getByText('This browser').waitFor();
  await page.getByRole('button', { name: 'Sign out everywhere' }).press('Enter');
  await page.getByRole('dialog').getByRole('button', { name: 'Sign out everywhere' }).press('Enter');
  await page.getByRole('heading', { name: 'Sign in to Trueup' }).waitFor();
  await other.page.goto('/settings');
  await other.page.getByRole('heading', { name: 'Sign in to Trueup' }).waitFor();
  await Promise.all([close(), other.close()]);
});

it('shows an auditor the settings that it may read, without buttons that the API would refuse', async () => {
  const auditor = await api.addKey(api.orgId, 'auditor');
  const { page, faults, close } = await openTab(browser, api.baseUrl, auditor);
  await visit(page, '/settings');
  const tabs = page.getByRole('navigation', { name: 'Settings' }).getByRole('link');
  expect(await tabs.allInnerTexts()).toEqual(['Organization', 'Workspaces', 'Sessions', 'Audit log']);
  expect(await page.getByRole('button', { name: 'Save' }).count()).toBe(0);
  await visit(page, '/settings/workspaces');
  expect(await page.getByRole('button', { name: 'Create a workspace' }).count()).toBe(0);
  expect(faults).toEqual([]);
  await close();
});
