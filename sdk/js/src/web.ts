import { setPlatform } from './platform.js';
import { webPlatform } from './platformWeb.js';

setPlatform(webPlatform);

export * from './api.js';
