/** Keeps the page to take part by, and what it reads, for when there is no network. Whatever is asked of the service is asked of it first. */
const CACHE = "discreet take-part";
const KEPT = /\/(take-part|collection|agreement|weights|questions|pages\/[\w.-]+)$/; // and no estimate, and nothing that is sent
const isKept = (address) => new URL(address).origin === location.origin && KEPT.test(new URL(address).pathname);

async function ask(request) {
  const answer = await fetch(request);
  if (answer.ok) await (await caches.open(CACHE)).put(request.url ?? request, answer.clone());
  return answer;
}

addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("message", (event) =>
  event.waitUntil(Promise.all([...new Set(event.data.addresses)].filter(isKept).map(ask)).finally(() => event.ports[0].postMessage(true))),
);
addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || !isKept(request.url)) return;
  event.respondWith(
    ask(request).catch(async (error) => {
      const kept = await caches.match(request.url, { ignoreVary: true });
      if (kept) return kept;
      throw error;
    }),
  );
});
