import { readFileSync } from 'node:fs';
import { sumOfCur } from './awsBills.js';
import { sumOfCostDetails } from './azureBills.js';
import { CSV_TABLE, type PlantedBill } from './planted.js';

const fixture = (name: string): Buffer =>
  readFileSync(new URL(`../../fixtures/bills/${name}`, import.meta.url));

/** Exports of real accounts (test/fixtures/bills/README.md): nothing was planted in them, and all of it is of other services. */
export const REAL_BILLS: readonly Omit<PlantedBill, 'charges'>[] = [
  {
    name: 'a real legacy CUR',
    filename: 'real-cur-legacy.csv',
    provider: 'aws_bedrock',
    format: 'aws_cur_legacy',
    bytes: fixture('aws-cur-legacy-anonymous.csv'),
    table: CSV_TABLE,
    sums: [sumOfCur('"lineItem/LineItemType"', '"lineItem/UnblendedCost"', '"lineItem/CurrencyCode"')],
  },
  {
    name: 'real Azure cost details',
    filename: 'real-azure-ea.csv',
    provider: 'azure_openai',
    format: 'azure_cost_details',
    bytes: fixture('azure-ea-anonymous.csv'),
    table: CSV_TABLE,
    sums: [sumOfCostDetails('BillingCurrencyCode')],
  },
];
