import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.js';
import { openTab, SCREEN_PATHS, startBrowser, visit } from '../support/browser.js';

const HOSTILE = '<img src=x onerror="window.isHit=1">';

let api: TestApi;
let browser: Browser;

beforeAll(async () => {
  [api, browser] = await Promise.all([startTestApi(), startBrowser()]);
  const created = [
    await api.post('/api/v1/ingest/events', {
      events: [
        {
          provider: 'openai',
          model: HOSTILE,
          timestamp: new Date().toISOString(),
          request_id: HOSTILE,
          session_id: HOSTILE,
          team_id: HOSTILE,
          feature: HOSTILE,
          user_id: HOSTILE,
          usage: { prompt_tokens: 1200, completion_tokens: 300 },
          payload: { prompt: HOSTILE },
        },
      ],
    }),
    await api.post('/api/v1/keys', { name: HOSTILE, role: 'auditor' }),
    await api.post('/api/v1/workspaces', { name: HOSTILE, project_id: 'p' }),
    await api.post('/api/v1/webhook-endpoints', {
      url: 'https://hooks.example.com/x',
      description: HOSTILE,
      event_types: ['alert.created'],
    }),
    await api.post('/api/v1/pricing/contract-rates', {
      provider: 'openai',
      model: '*',
      discount_percent: '10',
      effective_from: '2026-01-01',
      source: { document: HOSTILE, clause: HOSTILE, url: null },
    }),
  ];
  expect(created.map(({ status }) => status)).toEqual([202, 201, 201, 201, 201]);
});

afterAll(async () => {
  await browser.close();
  await api.close();
});

it.each(SCREEN_PATHS)('%s shows texts with markup as texts', async (path) => {
  const tab = await openTab(browser, api.baseUrl, api.adminKey);
  const dialogs: string[] = [];
  tab.page.on('dialog', (dialog) => dialogs.push(dialog.message()));
  await visit(tab.page, path);
  expect(await tab.page.evaluate('window.isHit')).toBeUndefined();
  expect(await tab.page.evaluate('document.querySelectorAll("img[src=x]").length')).toBe(0);
  expect(dialogs).toEqual([]);
  expect(tab.faults).toEqual([]);
  await tab.close();
});
