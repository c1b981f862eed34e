const form = document.getElementById("login");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const alarm = document.getElementById("alarm");
  alarm.textContent = "";
  const reply = await fetch("/api/login", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ password: document.getElementById("password").value }),
  });
  if (reply.ok) location.replace("/");
  else alarm.textContent = (await reply.json()).error;
});
