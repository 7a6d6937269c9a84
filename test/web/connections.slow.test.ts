import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.js';
import { openTab, startBrowser, visit } from '../support/browser.js';
import { testConnectors } from '../support/connectors.js';

let api: TestApi;
let browser: Browser;

beforeAll(async () => {
  [api, browser] = await Promise.all([startTestApi({ connectors: testConnectors() }), startBrowser()]);
});

afterAll(async () => {
  await browser.close();
  await api.close();
});

it('asks for the fields of the chosen connector and loses nothing when the provider does not answer', async () => {
  const { page, close } = await openTab(browser, api.baseUrl, api.adminKey);
  await visit(page, '/connections');
  await page.getByRole('button', { name: 'Connect a provider' }).press('Enter');
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: /Provider/ }).press('Enter');
  await page.getByRole('option', { name: 'AWS Bedrock' }).press('Enter');
  await dialog.getByLabel('Access key id').fill('AKIAIOSFODNN7LOOPBACK');
  expect(await dialog.getByRole('button', { name: 'Connect', exact: true }).isDisabled()).toBe(true);
  await dialog.getByLabel('Secret access key').fill('0'.repeat(40));
  await dialog.getByRole('button', { name: 'Connect', exact: true }).press('Enter');
  await dialog.getByRole('alert').waitFor();
  expect(await dialog.getByLabel('Access key id').inputValue()).toBe('AKIAIOSFODNN7LOOPBACK');
  expect((await api.get('/api/v1/billing-connections')).body.connections).toEqual([]);
  await close();
});

it('uploads a bill by the button', async () => {
  const { page, close } = await openTab(browser, api.baseUrl, api.adminKey);
  await visit(page, '/connections/imports');
  const chooser = page.waitForEvent('filechooser');
  await page.getByRole('button', { name: 'Upload a bill' }).press('Enter');
  const buffer = Buffer.from('date,model,amount_usd\n2026-03-01,gpt-4o-mini,1.25\n');
  await (await chooser).setFiles({ name: 'openai.csv', mimeType: 'text/csv', buffer });
  await page.getByRole('button', { name: 'Upload', exact: true }).press('Enter');
  await page.getByText('The bill is uploaded and is being read.').waitFor();
  const { imports } = (await api.get('/api/v1/billing-imports')).body;
  expect(imports[0]).toMatchObject({ filename: 'openai.csv', provider: 'openai' });
  await page
    .getByRole('cell', { name: /openai\.csv/ })
    .first()
    .waitFor();
  await close();
});

it('offers an auditor no connection and no upload', async () => {
  const auditor = await api.addKey(api.orgId, 'auditor');
  const { page, close } = await openTab(browser, api.baseUrl, auditor);
  await visit(page, '/connections');
  expect(await page.getByRole('button', { name: 'Connect a provider' }).count()).toBe(0);
  await visit(page, '/connections/imports');
  expect(await page.getByRole('button', { name: 'Upload a bill' }).count()).toBe(0);
  await close();
});
