import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { publicId } from '../../domain/ids.js';
import { startTestApi, type TestApi } from '../support/api.js';
import { testBlobs } from '../support/blobs.js';
import { openTab, startBrowser, visit } from '../support/browser.js';
import { invoicePdf } from '../support/invoicePdf.js';
import { INVOICES, storeReadInvoice } from '../support/invoices.js';

let api: TestApi;
let browser: Browser;

beforeAll(async () => {
  [api, browser] = await Promise.all([startTestApi({ blobs: testBlobs() }), startBrowser()]);
});

afterAll(async () => {
  await browser.close();
  await api.close();
});

it('corrects a line by keyboard, and the sums of the screen are those of the API', async () => {
  const id = publicId('inv', await storeReadInvoice(api.orgDb, 'Typo'));
  const { page, close } = await openTab(browser, api.baseUrl, api.adminKey);
  await visit(page, `/invoices/${id}`);
  await page.getByRole('button', { name: 'Open line 1: Typo 1' }).press('Enter');
  await page.getByLabel('Amount before tax').fill('a word');
  expect(await page.getByRole('button', { name: 'Save the correction' }).isDisabled()).toBe(true);
  await page.getByLabel('Amount before tax').fill('11.50');
  await page.getByLabel('Amount before tax').press('Enter');
  await page.getByText('Some sums of the document still disagree.').waitFor();
  await page.getByText('Corrected', { exact: true }).waitFor();
  const { body } = await api.get(`${INVOICES}/${id}`);
  expect(body.lines[0].amount).toBe(11.5);
  const wrong = body.checks.filter((check: { ok: boolean }) => !check.ok);
  expect(wrong.length).toBeGreaterThan(0);
  for (const { message } of wrong) await page.getByText(message).first().waitFor();
  // The foot of the lines and the sums of the document.
  expect(await page.getByRole('row', { name: 'Sum of 2 lines $31.50' }).count()).toBe(2);
  await close();
});

it('uploads a file by the button, and offers to delete it', async () => {
  const { page, close } = await openTab(browser, api.baseUrl, api.adminKey);
  await visit(page, '/invoices');
  const chooser = page.waitForEvent('filechooser');
  await page.getByRole('button', { name: 'Upload an invoice' }).press('Enter');
  const buffer = await invoicePdf({ number: 'Uploaded' });
  await (await chooser).setFiles({ name: 'anthropic-bill.pdf', mimeType: 'application/pdf', buffer });
  await page.getByRole('button', { name: 'Upload', exact: true }).press('Enter');
  await page.waitForURL(/\/invoices\/inv_/);
  const { body } = await api.get(`${INVOICES}?provider=anthropic`);
  expect(body.invoices[0]).toMatchObject({ filename: 'anthropic-bill.pdf', status: 'received' });
  await page.getByRole('button', { name: 'Delete', exact: true }).press('Enter');
  await page.getByRole('button', { name: 'Delete the invoice' }).press('Enter');
  await page.waitForURL(/\/invoices$/);
  expect((await api.get(`${INVOICES}?provider=anthropic`)).body.invoices).toEqual([]);
  await close();
});

it('offers an auditor nothing that the API would refuse', async () => {
  const id = publicId('inv', await storeReadInvoice(api.orgDb, 'Read only'));
  const auditor = await api.addKey(api.orgId, 'auditor');
  const { page, close } = await openTab(browser, api.baseUrl, auditor);
  await visit(page, `/invoices/${id}`);
  await page.getByRole('link', { name: 'Original file' }).waitFor();
  for (const name of ['Read again', 'Delete', 'The document is wrong'])
    expect(await page.getByRole('button', { name }).count(), name).toBe(0);
  await page.getByRole('button', { name: 'Open line 1: Read only 1' }).click();
  expect(await page.getByRole('button', { name: 'Save the correction' }).count()).toBe(0);
  await visit(page, '/invoices');
  expect(await page.getByRole('button', { name: 'Upload an invoice' }).count()).toBe(0);
  await close();
});

it('states that the days of an invoice are billed by another one, with its link, and marks the lines', async () => {
  const first = publicId('inv', await storeReadInvoice(api.orgDb, 'First'));
  const second = publicId('inv', await storeReadInvoice(api.orgDb, 'Second'));
  const { page, close } = await openTab(browser, api.baseUrl, api.adminKey);
  const days = { period_start: '2026-09-01', period_end: '2026-09-30', provider_account_id: 'acct' };
  // As the comparison answers where nothing of the bill is left for the second invoice.
  await page.route(/\/reconciliation\/invoices(\/inv_\w+)?(\?|$)/, async (route) => {
    // The stored invoices have other days than these.
    const answer = await route.fetch({
      url: route
        .request()
        .url()
        .replace(/period=[\d-]+/, ''),
    });
    const body = await answer.json();
    const change = (one: { id: string; lines?: object[] }) => ({
      ...one,
      ...days,
      status: 'needs_review',
      review_reasons: ['contradiction'],
      number: one.id === first ? 'A-0003' : 'A-0004',
      issue_date: one.id === first ? '2026-10-01' : '2026-10-02',
      tie_out: { tie: 'contradicts', reason: null, currency: 'USD', invoiced: 30, billed: 0, difference: 30 },
      ...(one.lines && {
        lines: one.lines.map((line) => ({
          ...line,
          match_status: 'matched',
          matched_amount: 15,
          difference: 0,
        })),
      }),
    });
    const json = body.invoices ? { ...body, invoices: body.invoices.map(change) } : change(body);
    await route.fulfill({ response: answer, json });
  });
  await visit(page, `/invoices/${second}`);
  await page.getByText('charges for a month that is already billed').waitFor();
  expect(await page.getByRole('link', { name: 'invoice A-0003' }).getAttribute('href')).toBe(
    `/invoices/${first}`,
  );
  expect(await page.getByText('Billed twice', { exact: true }).count()).toBe(2);
  expect(await page.getByText('Matched', { exact: true }).count()).toBe(0);
  await close();
});
